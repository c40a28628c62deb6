// swift-tools-version: 6.0
import PackageDescription

// Fuzzing needs a target whose `main` is libFuzzer's: it is there only for Tools/scripts/fuzz.sh.
let isFuzzing = Context.environment["HEARTH_FUZZ"] != nil
let fuzzing: [Target] = [
    .executableTarget(
        name: "HearthFuzz",
        dependencies: [
            "HearthBundle", "HearthNetwork", "HearthRules", "HearthServer", "HearthStorage", "HearthTree",
            "HearthWebSocket", "HearthWire",
        ],
        path: "Tests/Fuzz/HearthFuzz", swiftSettings: [.unsafeFlags(["-parse-as-library"])])
]

// Test targets to build, separated by commas, for whoever changes one module: HEARTH_TESTS=HearthStorageTests.
let wantedTests = Context.environment["HEARTH_TESTS"].map { Set($0.split(separator: ",").map(String.init)) }

// The folders are the architecture: see docs/architecture.md. Dependencies point inward only:
// Model <- Wire <- Storage <- Services <- the tool.
let package = Package(
    name: "hearth",
    products: [
        .executable(name: "hearth", targets: ["hearth"]),
        .library(name: "HearthFirestore", targets: ["HearthFirestore"]),
        .library(name: "HearthDatabase", targets: ["HearthDatabase"]),
    ],
    targets: [
        // Core: what server and client share; no sockets, no HTTP.
        .target(name: "HearthModel", path: "Core/Model"),
        .target(name: "HearthWire", dependencies: ["HearthModel"], path: "Core/Wire"),
        .systemLibrary(name: "CLinux", path: "Core/Platform/CLinux"),
        .target(name: "HearthConcurrency", dependencies: ["HearthModel", "CLinux"], path: "Core/Concurrency"),
        .target(
            name: "HearthStorage", dependencies: ["HearthModel", "HearthWire", "HearthConcurrency"],
            path: "Core", exclude: ["Engine/SQLite"], sources: ["Engine", "Documents"]),
        .systemLibrary(
            name: "CSQLite", path: "Core/Platform/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "HearthSQLite", dependencies: ["HearthModel", "HearthConcurrency", "HearthStorage", "CSQLite"],
            path: "Core/Engine/SQLite"),

        // The Realtime Database's tree, and its form in a store; WebSocket for both ends.
        .target(name: "HearthTree", dependencies: ["HearthModel", "COpenSSL"], path: "Core/Tree"),
        .target(
            name: "HearthTreeStorage",
            dependencies: ["HearthModel", "HearthConcurrency", "HearthStorage", "HearthTree"],
            path: "Core/TreeStorage"),
        .target(
            name: "HearthWebSocket", dependencies: ["HearthModel", "COpenSSL", "CZlib"], path: "Core/WebSocket"),

        // Rules.
        .target(name: "CRE2", path: "Core/Platform/CRE2", linkerSettings: [.linkedLibrary("re2")]),
        .target(
            name: "HearthRules", dependencies: ["HearthModel", "HearthTree", "CRE2"], path: "Rules"),

        // Server.
        .systemLibrary(
            name: "CNghttp2", path: "Core/Platform/CNghttp2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(
            name: "COpenSSL", path: "Core/Platform/COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CZlib", path: "Core/Platform/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(
            name: "HearthNetwork",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthWebSocket", "CLinux", "CNghttp2", "COpenSSL", "CZlib",
            ],
            path: "Server/Network"),
        .systemLibrary(
            name: "CCurl", path: "Core/Platform/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(
            name: "HearthServer",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthStorage", "HearthSQLite", "HearthNetwork",
                "HearthRules", "HearthBundle", "HearthTree", "HearthTreeStorage", "HearthWebSocket", "COpenSSL",
                "CCurl",
            ],
            path: "Server", sources: ["Host", "Firestore", "Realtime", "Assembly"]),

        // Bundles: shared by the server, the tool and the client.
        .target(name: "HearthBundle", dependencies: ["HearthModel", "HearthWire"], path: "Bundler"),

        // The client. `HearthApp` is what its products share: the app, the signed-in user, the coders. `HearthSync` is
        // Firestore's engine, free of names that Apple's API has, too; `HearthFirestore` is that API.
        .target(name: "HearthApp", dependencies: ["HearthModel"], path: "Client/App"),
        .systemLibrary(name: "CNetlink", path: "Core/Platform/CNetlink"),
        .target(
            name: "HearthTransport",
            dependencies: ["HearthModel", "HearthWebSocket", "CCurl", "CNetlink", "CNghttp2", "COpenSSL", "CZlib"],
            path: "Client/Transport"),
        .target(
            name: "HearthSync",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthStorage", "HearthSQLite", "HearthBundle",
                "CSQLite",
            ], path: "Client/Sync"),
        .target(
            name: "HearthFirestore",
            dependencies: [
                "HearthModel", "HearthApp", "HearthWire", "HearthConcurrency", "HearthStorage", "HearthBundle",
                "HearthSync", "HearthTransport",
            ], path: "Client/Firestore"),
        .target(
            name: "HearthDatabase",
            dependencies: [
                "HearthModel", "HearthApp", "HearthTree", "HearthConcurrency", "HearthTransport", "HearthWebSocket",
                "HearthSQLite", "CSQLite",
            ],
            path: "Client/Database",
            // The inner modules' names never appear in public signatures.
            swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault")]),

        // The tool.
        .executableTarget(
            name: "hearth",
            dependencies: [
                "HearthServer", "HearthRules", "HearthNetwork", "HearthModel", "HearthWire", "HearthStorage",
                "HearthSQLite", "HearthBundle", "HearthTree", "HearthTreeStorage", "CSQLite",
            ], path: "Tools", sources: ["hearth", "Bench"]),

        .executableTarget(name: "hearth-notes", dependencies: ["HearthFirestore"], path: "Tools/Examples/Notes"),
        .executableTarget(name: "hearth-client-bench", dependencies: ["HearthFirestore"], path: "Tools/ClientBench"),

        // Tests, one folder a target.
        // Authorities and certificates, for tests of more than one module.
        .target(
            name: "HearthTestCertificates",
            dependencies: ["HearthModel", "HearthNetwork", "HearthTransport", "COpenSSL"],
            path: "Tests/Certificates"),
        // Stores that fail when a test wants it.
        .target(name: "HearthTestDoubles", dependencies: ["HearthModel", "HearthStorage"], path: "Tests/Doubles"),
        .testTarget(
            name: "HearthConcurrencyTests", dependencies: ["HearthModel", "HearthConcurrency"],
            path: "Tests/HearthConcurrencyTests"),
        .testTarget(name: "HearthModelTests", dependencies: ["HearthModel"], path: "Tests/HearthModelTests"),
        .testTarget(
            name: "HearthWireTests", dependencies: ["HearthModel", "HearthWire"], path: "Tests/HearthWireTests",
            exclude: ["Golden"]),
        .testTarget(
            name: "HearthTreeTests", dependencies: ["HearthModel", "HearthTree"], path: "Tests/HearthTreeTests"),
        .testTarget(
            name: "HearthTreeStorageTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthStorage", "HearthSQLite", "HearthTree", "HearthTreeStorage",
                "HearthTestDoubles",
            ],
            path: "Tests/HearthTreeStorageTests"),
        .testTarget(
            name: "HearthWebSocketTests", dependencies: ["HearthModel", "HearthWebSocket"],
            path: "Tests/HearthWebSocketTests"),
        .testTarget(
            name: "HearthStorageTests",
            dependencies: ["HearthModel", "HearthWire", "HearthConcurrency", "HearthStorage", "HearthTestDoubles"],
            path: "Tests/HearthDocumentsTests"),
        .testTarget(
            name: "HearthRulesTests", dependencies: ["HearthModel", "HearthTree", "HearthRules"],
            path: "Tests/HearthRulesTests",
            exclude: ["cases"]),
        .testTarget(
            name: "HearthSQLiteTests",
            dependencies: ["HearthModel", "HearthConcurrency", "HearthStorage", "HearthSQLite", "CSQLite"],
            path: "Tests/HearthSQLiteTests"),
        .testTarget(
            name: "HearthNetworkTests",
            dependencies: ["HearthModel", "HearthConcurrency", "HearthNetwork", "HearthWebSocket"],
            path: "Tests/HearthNetworkTests"),
        .testTarget(
            name: "HearthServerTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthWire", "HearthStorage", "HearthNetwork", "HearthBundle",
                "HearthServer", "HearthTestDoubles",
                "HearthTree", "HearthRules", "HearthWebSocket",
            ],
            path: "Tests/HearthServerTests"),
        .testTarget(
            name: "HearthRealtimeTests",
            dependencies: [
                "HearthModel", "HearthStorage", "HearthTree", "HearthTreeStorage", "HearthRules", "HearthNetwork",
                "HearthServer", "HearthTestDoubles",
            ],
            path: "Tests/HearthRealtimeTests"),
        .testTarget(
            name: "HearthBundleTests", dependencies: ["HearthModel", "HearthWire", "HearthBundle"],
            path: "Tests/HearthBundleTests"),
        .testTarget(
            name: "HearthTransportTests",
            dependencies: [
                "HearthModel", "HearthNetwork", "HearthTransport", "HearthWebSocket", "HearthTestCertificates",
                "COpenSSL",
            ],
            path: "Tests/HearthTransportTests"),
        .testTarget(
            name: "HearthSyncTests",
            dependencies: ["HearthModel", "HearthWire", "HearthStorage", "HearthSQLite", "HearthBundle", "HearthSync"],
            path: "Tests/HearthSyncTests"),
        .testTarget(
            name: "HearthFirestoreTests",
            dependencies: [
                "HearthModel", "HearthApp", "HearthWire", "HearthSync", "HearthTransport", "HearthFirestore",
            ],
            path: "Tests/HearthFirestoreTests"),
        .testTarget(
            name: "HearthDatabaseTests",
            dependencies: ["HearthModel", "HearthApp", "HearthTree", "HearthWebSocket", "HearthDatabase"],
            path: "Tests/HearthDatabaseTests"),
        // The guide's samples, compiled and run against a server in the test's process.
        .testTarget(
            name: "HearthGuideTests",
            dependencies: ["HearthServer", "HearthNetwork", "HearthFirestore", "HearthDatabase"],
            path: "Tests/HearthGuideTests", exclude: ["guarded.rules", "locked.rules.json"]),
        // Only the client's public API, a server, and a network that can be cut.
        .testTarget(
            name: "HearthEndToEndTests",
            dependencies: [
                "HearthModel", "HearthNetwork", "HearthServer", "HearthFirestore", "HearthDatabase",
                "HearthTestCertificates", "CSQLite",
            ],
            path: "Tests/EndToEnd"),
        .testTarget(
            name: "HearthToolTests", dependencies: ["HearthModel", "HearthWire", "HearthServer", "hearth"],
            path: "Tests/HearthToolTests"),
    ].filter { $0.type != .test || wantedTests?.contains($0.name) ?? true } + (isFuzzing ? fuzzing : []),
    swiftLanguageModes: [.v6]
)
