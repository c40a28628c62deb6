// swift-tools-version: 6.3
import PackageDescription

// Fuzzing needs a target whose `main` is libFuzzer's: it is there only for Tools/scripts/fuzz.sh.
let isFuzzing = Context.environment["HEARTH_FUZZ"] != nil
let fuzzing: [Target] = [
    .executableTarget(
        name: "HearthFuzz",
        dependencies: [
            "HearthFuzzing", "HearthClientFuzzing", "HearthBundle", "HearthDocuments", "HearthFirestoreServer",
            "HearthNetwork",
            "HearthRealtimeServer", "HearthRules", "HearthTree", "HearthWebSocket", "HearthWire",
        ], path: "Tools/Fuzz/Program",
        swiftSettings: [.unsafeFlags(["-parse-as-library"])])
]

// The name for the linker. Releases have the static library in the program: Tools/scripts/static-re2.sh.
let re2 = Context.environment["HEARTH_RE2"] ?? "re2"

// Test targets to build with what they depend on, separated by commas, for whoever changes one module:
// HEARTH_TESTS=HearthDocumentsTests.
let wantedTests = Context.environment["HEARTH_TESTS"].map { $0.split(separator: ",").map(String.init) }

// The folders are the architecture: see docs/internals/architecture.md. Dependencies point inward only:
// Model, JSON <- Wire, Engine <- Documents, TreeStorage <- Host <- the products <- the programs.
let package = Package(
    name: "hearth",
    products: [
        .executable(name: "hearth", targets: ["hearth"]),
        .executable(name: "hearth-bench", targets: ["hearth-bench"]),
        .library(name: "HearthFirestore", targets: ["HearthFirestore"]),
        .library(name: "HearthDatabase", targets: ["HearthDatabase"]),
        // The names of Google's library for Apple platforms, for code that is written for it: docs/guide/apple-code.md.
        .library(name: "FirebaseCore", targets: ["FirebaseCore"]),
        .library(name: "FirebaseAuth", targets: ["FirebaseAuth"]),
        .library(name: "FirebaseFirestore", targets: ["FirebaseFirestore"]),
        .library(name: "FirebaseFirestoreSwift", targets: ["FirebaseFirestoreSwift"]),
        .library(name: "FirebaseDatabase", targets: ["FirebaseDatabase"]),
        .library(name: "FirebaseDatabaseSwift", targets: ["FirebaseDatabaseSwift"]),
    ],
    targets: [
        // Core: what server and client share; no sockets, no HTTP.
        .target(name: "HearthModel", path: "Core/Model"),
        .target(name: "HearthJSON", path: "Core/JSON"),
        .target(name: "HearthWire", dependencies: ["HearthModel", "HearthJSON"], path: "Core/Wire"),
        .target(name: "HearthConcurrency", dependencies: ["HearthModel", "CLinux"], path: "Core/Concurrency"),
        .target(
            name: "HearthEngine", dependencies: ["HearthModel", "HearthConcurrency", "CLinux"], path: "Core/Engine",
            exclude: ["SQLite"]),
        .target(
            name: "HearthSQLite", dependencies: ["HearthModel", "HearthConcurrency", "HearthEngine", "CSQLite"],
            path: "Core/Engine/SQLite"),
        .target(
            name: "HearthDocuments", dependencies: ["HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine"],
            path: "Core/Documents"),
        .target(name: "HearthTree", dependencies: ["HearthModel", "HearthJSON", "COpenSSL"], path: "Core/Tree"),
        .target(
            name: "HearthTreeStorage",
            dependencies: ["HearthModel", "HearthConcurrency", "HearthEngine", "HearthTree"], path: "Core/TreeStorage"),
        .target(name: "HearthWebSocket", dependencies: ["COpenSSL", "CZlib"], path: "Core/WebSocket"),
        .target(
            name: "HearthTLS", dependencies: ["HearthModel", "COpenSSL", "COpenSSLStart"], path: "Core/TLS"),

        .target(
            name: "HearthHTTPClient",
            dependencies: ["HearthModel", "HearthConcurrency", "HearthTLS", "CCurl", "CNetlink"],
            path: "Core/HTTPClient"),
        .target(
            name: "HearthEvents", dependencies: ["HearthModel", "HearthJSON", "HearthWire", "HearthTree"],
            path: "Core/Events"),

        .target(name: "HearthExport", dependencies: ["HearthModel", "HearthWire", "CLinux"], path: "Core/Export"),

        // C libraries of Debian, and a few functions of the system that Swift cannot call.
        .systemLibrary(name: "CLinux", path: "Core/Platform/CLinux"),
        .systemLibrary(name: "CNetlink", path: "Core/Platform/CNetlink"),
        .systemLibrary(
            name: "CSQLite", path: "Core/Platform/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CNghttp2", path: "Core/Platform/CNghttp2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(
            name: "COpenSSL", path: "Core/Platform/COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        // Before `main`, so that a program may end while its threads use OpenSSL.
        .target(name: "COpenSSLStart", dependencies: ["COpenSSL"], path: "Core/Platform/COpenSSLStart"),
        .systemLibrary(
            name: "CZlib", path: "Core/Platform/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CCurl", path: "Core/Platform/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(name: "CRE2", path: "Core/Platform/CRE2", linkerSettings: [.linkedLibrary(re2)]),
        // Where a release has its commit.
        .target(name: "CBuild", path: "Core/Platform/CBuild"),
        // The last lines of a process that a fault ends.
        .target(name: "CCrash", path: "Core/Platform/CCrash"),

        // Security Rules of both products; bundles, for server, tool and client.
        .target(
            name: "HearthRules",
            dependencies: ["HearthModel", "HearthJSON", "HearthTree", "COpenSSL", "CRE2", "CZlib"],
            path: "Rules"),
        .target(name: "HearthBundle", dependencies: ["HearthModel", "HearthWire"], path: "Bundler"),

        // Server: the network, what both products share, a module a product, and what puts them together.
        .target(
            name: "HearthNetwork",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthWebSocket", "HearthTLS", "CCrash", "CLinux", "CNghttp2",
                "COpenSSL", "CZlib",
            ],
            path: "Server/Network"),
        .target(
            name: "HearthHost",
            dependencies: [
                "HearthModel", "HearthJSON", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthSQLite",
                "HearthDocuments",
                "HearthTreeStorage", "HearthBundle", "HearthNetwork", "CBuild", "COpenSSL", "CCurl",
            ],
            path: "Server/Host"),
        .target(
            name: "HearthFirestoreServer",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthRules",
                "HearthBundle", "HearthEvents", "HearthExport", "HearthNetwork", "HearthHost", "COpenSSL",
            ],
            path: "Server/Firestore"),
        .target(
            name: "HearthRealtimeServer",
            dependencies: [
                "HearthModel", "HearthJSON", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthSQLite",
                "HearthTree", "HearthTreeStorage", "HearthEvents", "HearthRules", "HearthWebSocket", "HearthNetwork",
                "HearthHost", "COpenSSL",
            ],
            path: "Server/Realtime"),
        .target(
            name: "HearthTriggers",
            dependencies: [
                "HearthModel", "HearthJSON", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments",
                "HearthTree", "HearthTreeStorage", "HearthHTTPClient", "HearthEvents", "HearthNetwork", "HearthHost",
            ],
            path: "Server/Triggers"),
        .target(
            name: "HearthBackup",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthSQLite", "HearthDocuments",
                "HearthNetwork", "HearthHost", "CLinux", "COpenSSL",
            ],
            path: "Server/Backup"),
        .target(
            name: "HearthServer",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthSQLite", "HearthDocuments",
                "HearthNetwork", "HearthHost", "HearthFirestoreServer", "HearthRealtimeServer", "HearthTriggers",
                "HearthBackup",
            ],
            path: "Server/Assembly"),

        // The client. `HearthApp` is what its products share: the app, the signed-in user, the coders. `HearthSync` is
        // Firestore's engine, free of names that Apple's API has, too; `HearthFirestore` is that API.
        .target(
            name: "HearthApp", dependencies: ["HearthModel", "HearthConcurrency", "HearthTLS"], path: "Client/App"),
        .target(
            name: "HearthCache", dependencies: ["HearthModel", "HearthSQLite", "CSQLite", "CZlib"], path: "Client/Cache"
        ),
        .target(
            name: "HearthTransport",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthHTTPClient", "HearthWebSocket", "HearthTLS", "CCurl",
                "CNetlink", "CNghttp2", "COpenSSL", "CZlib",
            ],
            path: "Client/Transport"),
        .target(
            name: "HearthSync",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthDocuments", "HearthCache",
                "HearthBundle", "COpenSSL",
            ], path: "Client/Sync"),
        .target(
            name: "HearthFirestore",
            dependencies: [
                "HearthModel", "HearthApp", "HearthWire", "HearthConcurrency", "HearthDocuments", "HearthBundle",
                "HearthHTTPClient", "HearthSync", "HearthTransport", "HearthTLS",
            ], path: "Client/Firestore"),
        .target(
            name: "HearthDatabase",
            dependencies: [
                "HearthModel", "HearthApp", "HearthTree", "HearthConcurrency", "HearthHTTPClient", "HearthTransport",
                "HearthCache",
            ],
            path: "Client/Database",
            // The inner modules' names never appear in public signatures.
            swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault")]),
        .target(name: "FirebaseCore", dependencies: ["HearthApp"], path: "Client/Shims/FirebaseCore"),
        .target(name: "FirebaseAuth", dependencies: ["FirebaseCore"], path: "Client/Shims/FirebaseAuth"),
        .target(name: "FirebaseFirestore", dependencies: ["HearthFirestore"], path: "Client/Shims/FirebaseFirestore"),
        .target(
            name: "FirebaseFirestoreSwift", dependencies: ["FirebaseFirestore"],
            path: "Client/Shims/FirebaseFirestoreSwift"),
        .target(name: "FirebaseDatabase", dependencies: ["HearthDatabase"], path: "Client/Shims/FirebaseDatabase"),
        .target(
            name: "FirebaseDatabaseSwift", dependencies: ["FirebaseDatabase"],
            path: "Client/Shims/FirebaseDatabaseSwift"),

        // Programs, and what they share.
        .target(
            name: "HearthToolSupport", dependencies: ["HearthModel", "HearthNetwork", "HearthHost"],
            path: "Tools/Support"),
        .target(
            name: "HearthLoadClient",
            dependencies: [
                "HearthModel", "HearthTLS", "HearthNetwork", "CNghttp2",
            ],
            path: "Tools/LoadClient"),
        // A load generator in C: it shares the machine with the server that it measures.
        .target(name: "CLoad", path: "Tools/LoadC", linkerSettings: [.linkedLibrary("nghttp2")]),
        .executableTarget(
            name: "hearth",
            dependencies: [
                "HearthServer", "HearthHost", "HearthFirestoreServer", "HearthRealtimeServer", "HearthTriggers",
                "HearthBackup", "HearthRules", "HearthNetwork", "HearthModel", "HearthJSON", "HearthWire",
                "HearthConcurrency", "HearthEngine", "HearthSQLite",
                "HearthDocuments", "HearthBundle", "HearthTree", "HearthTreeStorage", "HearthExport",
                "HearthLoadClient", "CCrash",
                "HearthToolSupport",
            ], path: "Tools/hearth"),
        .executableTarget(
            name: "hearth-bench",
            dependencies: [
                "HearthHost", "HearthRules", "HearthNetwork", "HearthModel", "HearthWire", "HearthEngine",
                "HearthSQLite", "HearthTree",
                "HearthLoadClient", "HearthToolSupport", "CLoad", "CSQLite",
            ], path: "Tools/Bench"),
        // Random traffic with a model that knows each answer.
        .target(
            name: "HearthTraffic",
            dependencies: ["HearthModel", "HearthNetwork", "HearthWebSocket", "HearthLoadClient"],
            path: "Tools/Traffic", exclude: ["Program"]),
        .executableTarget(
            name: "hearth-traffic",
            dependencies: ["HearthModel", "HearthNetwork", "HearthTraffic", "HearthLoadClient", "HearthToolSupport"],
            path: "Tools/Traffic/Program"),
        .executableTarget(name: "hearth-client-bench", dependencies: ["HearthFirestore"], path: "Tools/ClientBench"),
        .executableTarget(name: "hearth-notes", dependencies: ["HearthFirestore"], path: "Tools/Examples/Notes"),
        .executableTarget(
            name: "hearth-chat", dependencies: ["HearthDatabase"], path: "Tools/Examples/Chat", exclude: ["README.md"]),
        .executableTarget(
            name: "hearth-front-page", dependencies: ["HearthFirestore"], path: "Tools/Examples/FrontPage",
            exclude: ["README.md", "firestore.rules", "hearth.json", "stories.json"]),
        .executableTarget(
            name: "hearth-change-copy", dependencies: ["HearthModel", "HearthHTTPClient", "CSQLite"],
            path: "Tools/Examples/ChangeCopy"),
        .target(
            name: "HearthFuzzing",
            dependencies: [
                "HearthModel", "HearthEvents", "HearthExport", "HearthWire", "HearthConcurrency", "HearthEngine",
                "HearthDocuments", "HearthTree",
                "HearthTreeStorage", "HearthWebSocket", "HearthRules", "HearthBundle", "HearthNetwork", "HearthHost",
                "HearthFirestoreServer", "HearthRealtimeServer", "HearthTraffic", "HearthTriggers",
            ], path: "Tools/Fuzz/Entries"),
        .target(
            name: "HearthClientFuzzing",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthWire", "HearthTree", "HearthWebSocket", "HearthHTTPClient",
                "HearthTransport", "HearthSync", "HearthApp", "HearthCache", "HearthDatabase", "HearthFirestore",
            ], path: "Tools/Fuzz/ClientEntries"),

        // Tests, one folder a target.
        // Authorities and certificates, for tests of more than one module.
        .target(
            name: "HearthTestCertificates",
            dependencies: ["HearthModel", "HearthTLS", "HearthNetwork", "HearthHTTPClient", "COpenSSL"],
            path: "Tests/Certificates"),
        // Stores that fail when a test wants it.
        .target(
            name: "HearthTestDoubles", dependencies: ["HearthModel", "HearthEngine"],
            path: "Tests/Doubles"),
        // A store of each engine.
        .target(
            name: "HearthTestStores",
            dependencies: ["HearthModel", "HearthEngine", "HearthSQLite", "HearthTestSupport"],
            path: "Tests/Stores"),
        // Seeds, temporary folders, clocks that stand still, threads and waiting for them. Needs no engine.
        .target(
            name: "HearthTestSupport", dependencies: ["HearthModel", "HearthConcurrency"], path: "Tests/Support"),
        .testTarget(
            name: "HearthConcurrencyTests", dependencies: ["HearthModel", "HearthConcurrency", "HearthTestSupport"],
            path: "Tests/HearthConcurrencyTests"),
        .testTarget(name: "HearthJSONTests", dependencies: ["HearthJSON"], path: "Tests/HearthJSONTests"),
        .testTarget(
            name: "HearthModelTests", dependencies: ["HearthModel", "HearthTestSupport"], path: "Tests/HearthModelTests"
        ),
        .testTarget(
            name: "HearthWireTests", dependencies: ["HearthModel", "HearthWire", "HearthFuzzing", "HearthTestSupport"],
            path: "Tests/HearthWireTests",
            exclude: ["Golden"]),
        .testTarget(
            name: "HearthTreeTests", dependencies: ["HearthModel", "HearthTree", "HearthFuzzing", "HearthTestSupport"],
            path: "Tests/HearthTreeTests"),
        .testTarget(
            name: "HearthTreeStorageTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthSQLite", "HearthTree",
                "HearthTreeStorage", "HearthTestDoubles", "HearthTestSupport",
            ],
            path: "Tests/HearthTreeStorageTests"),
        .testTarget(
            name: "HearthWebSocketTests", dependencies: ["HearthWebSocket", "HearthTestSupport"],
            path: "Tests/HearthWebSocketTests"),
        .testTarget(
            name: "HearthEngineTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthEngine", "HearthTestStores", "HearthTestSupport",
            ],
            path: "Tests/HearthEngineTests"),
        .testTarget(
            name: "HearthDocumentsTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments",
                "HearthTestDoubles", "HearthTestSupport",
            ],
            path: "Tests/HearthDocumentsTests"),
        .testTarget(
            name: "HearthRulesTests",
            dependencies: ["HearthModel", "HearthTree", "HearthRules", "HearthFuzzing", "HearthTestSupport"],
            path: "Tests/HearthRulesTests",
            exclude: ["cases"]),
        .testTarget(
            name: "HearthSQLiteTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthSQLite", "CSQLite",
                "HearthTestStores", "HearthTestSupport",
            ],
            path: "Tests/HearthSQLiteTests"),
        .testTarget(
            name: "HearthCacheTests", dependencies: ["HearthModel", "HearthCache", "HearthTestSupport"],
            path: "Tests/HearthCacheTests"),
        .testTarget(
            name: "HearthNetworkTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthTLS", "HearthNetwork", "HearthLoadClient", "HearthWebSocket",
                "CLinux",
                "HearthTestSupport",
            ],
            path: "Tests/HearthNetworkTests"),
        .testTarget(
            name: "HearthHostTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthNetwork",
                "HearthHost", "HearthTestSupport",
            ],
            path: "Tests/HearthHostTests"),
        .testTarget(
            name: "HearthFirestoreServerTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthRules",
                "HearthBundle", "HearthEvents", "HearthExport", "HearthNetwork", "HearthHost", "HearthFirestoreServer",
                "HearthTestDoubles", "HearthTestSupport", "HearthWebSocket",
            ],
            path: "Tests/HearthFirestoreServerTests"),
        // What needs the whole server.
        .testTarget(
            name: "HearthServerTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthWire", "HearthDocuments", "HearthTree", "HearthRules",
                "HearthWebSocket", "HearthBundle", "HearthNetwork", "HearthHost", "HearthFirestoreServer",
                "HearthRealtimeServer", "HearthServer", "HearthLoadClient", "HearthFuzzing", "HearthTestSupport",
                "HearthEngine", "HearthTreeStorage", "HearthEvents",
            ],
            path: "Tests/HearthServerTests"),
        .testTarget(
            name: "HearthBackupTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthEngine", "HearthSQLite", "HearthHost", "HearthBackup",
                "HearthTestSupport",
            ],
            path: "Tests/HearthBackupTests"),
        .testTarget(
            name: "HearthRealtimeTests",
            dependencies: [
                "HearthModel", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthTree",
                "HearthTreeStorage", "HearthEvents", "HearthRules", "HearthNetwork",
                "HearthServer", "HearthHost", "HearthRealtimeServer", "HearthTestDoubles",
                "HearthTestSupport",
            ],
            path: "Tests/HearthRealtimeTests"),
        .testTarget(
            name: "HearthBundleTests",
            dependencies: ["HearthModel", "HearthWire", "HearthBundle", "HearthFuzzing", "HearthTestSupport"],
            path: "Tests/HearthBundleTests"),
        .testTarget(
            name: "HearthEventsTests",
            dependencies: [
                "HearthModel", "HearthJSON", "HearthWire", "HearthTree", "HearthEvents", "HearthTestSupport",
            ],
            path: "Tests/HearthEventsTests"),
        .testTarget(
            name: "HearthExportTests",
            dependencies: ["HearthModel", "HearthWire", "HearthExport", "HearthFuzzing", "HearthTestSupport"],
            path: "Tests/HearthExportTests"),
        .testTarget(
            name: "HearthTriggersTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthConcurrency", "HearthEngine", "HearthDocuments", "HearthTree",
                "HearthTreeStorage", "HearthHost", "HearthEvents", "HearthHTTPClient", "HearthTriggers",
                "HearthFuzzing",
                "HearthTestDoubles", "HearthTestSupport",
            ],
            path: "Tests/HearthTriggersTests"),
        .testTarget(
            name: "HearthTransportTests",
            dependencies: [
                "HearthModel", "HearthTLS", "HearthNetwork", "HearthHTTPClient", "HearthTransport", "HearthWebSocket",
                "HearthTestCertificates", "COpenSSL", "HearthClientFuzzing", "HearthTestSupport",
            ],
            path: "Tests/HearthTransportTests"),
        .testTarget(
            name: "HearthSyncTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthCache",
                "HearthSync", "HearthClientFuzzing", "HearthTestSupport",
            ],
            path: "Tests/HearthSyncTests"),
        .testTarget(
            name: "HearthFirestoreTests",
            dependencies: [
                "HearthModel", "HearthApp", "HearthWire", "HearthHTTPClient", "HearthSync", "HearthTransport",
                "HearthTLS",
                "HearthFirestore", "HearthTestSupport",
            ],
            path: "Tests/HearthFirestoreTests"),
        .testTarget(
            name: "HearthDatabaseTests",
            dependencies: [
                "HearthModel", "HearthApp", "HearthTree", "HearthCache", "HearthDatabase", "HearthClientFuzzing",
                "HearthTestSupport",
            ],
            path: "Tests/HearthDatabaseTests"),
        // The guide's samples, compiled and run against a server in the test's process.
        .testTarget(
            name: "HearthGuideTests",
            dependencies: [
                "HearthModel", "HearthServer", "HearthHost", "HearthNetwork",
                "HearthFirestore", "HearthDatabase", "HearthTestSupport",
            ],
            path: "Tests/HearthGuideTests", exclude: ["guarded.rules", "versioned.rules", "locked.rules.json"]),
        // Code written for Apple platforms: it imports only the names of Google's library.
        .testTarget(
            name: "HearthShimTests",
            dependencies: [
                "HearthServer", "HearthHost", "HearthNetwork", "FirebaseCore", "FirebaseAuth", "FirebaseFirestore",
                "FirebaseFirestoreSwift", "FirebaseDatabase", "FirebaseDatabaseSwift", "HearthTestSupport",
            ],
            path: "Tests/HearthShimTests"),
        // The examples in Swift, with the commands of their pages.
        .testTarget(
            name: "HearthExampleTests",
            dependencies: ["HearthTestSupport", "hearth", "hearth-chat", "hearth-front-page"],
            path: "Tests/HearthExampleTests"),
        // A program of tests: it uses the client and ends, or is killed, at any moment.
        .executableTarget(
            name: "hearth-test-client", dependencies: ["HearthFirestore", "HearthDatabase", "HearthTestSupport"],
            path: "Tests/Programs/Client"),
        // Only the client's public API, a server, and a network that can be cut.
        .testTarget(
            name: "HearthEndToEndTests",
            dependencies: [
                "HearthModel", "HearthNetwork", "HearthServer", "HearthHost", "HearthFirestoreServer",
                "HearthFirestore", "HearthDatabase", "HearthTestCertificates", "CSQLite",
                "HearthTestSupport", "hearth", "hearth-test-client",
            ],
            path: "Tests/EndToEnd"),
        .testTarget(
            name: "HearthTrafficTests", dependencies: ["HearthTraffic", "HearthTestSupport"],
            path: "Tests/HearthTrafficTests"),
        .testTarget(
            name: "HearthToolTests",
            dependencies: [
                "HearthModel", "HearthWire", "HearthServer", "HearthHost", "HearthFirestoreServer",
                "HearthRules", "HearthRealtimeServer", "HearthTriggers", "HearthBackup", "HearthConcurrency",
                "HearthNetwork",
                "HearthLoadClient", "HearthToolSupport", "HearthTestSupport",
                "hearth",
                "hearth-bench",
            ],
            path: "Tests/HearthToolTests"),
    ] + (isFuzzing ? fuzzing : []),
    swiftLanguageModes: [.v6]
)

extension Target {
    /// The targets of this package that this one names.
    var namesOfDependencies: [String] {
        dependencies.compactMap { dependency in
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): name
            default: nil
            }
        }
    }
}

if let wantedTests {
    var needed: Set<String> = []
    var open = wantedTests
    while let name = open.popLast() {
        guard needed.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            continue
        }
        open += target.namesOfDependencies
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll { product in
        switch product {
        case let executable as Product.Executable: !needed.isSuperset(of: executable.targets)
        case let library as Product.Library: !needed.isSuperset(of: library.targets)
        default: false
        }
    }
}
