// swift-tools-version: 6.0
import PackageDescription

// The folders are the architecture: see docs/architecture.md. Dependencies point inward only:
// Model <- Wire <- Storage <- Services <- the tool.
let package = Package(
    name: "hearth",
    products: [
        .library(name: "HearthModel", targets: ["HearthModel"]),
        .library(name: "HearthSQLite", targets: ["HearthSQLite"]),
    ],
    targets: [
        // Core: what server and client share; no sockets, no HTTP.
        .target(name: "HearthModel", path: "Core/Model"),
        .target(name: "HearthWire", dependencies: ["HearthModel"], path: "Core/Wire"),
        .target(name: "HearthStorage", dependencies: ["HearthModel", "HearthWire"], path: "Core/Storage"),
        .systemLibrary(
            name: "CSQLite", path: "Core/SQLite/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "HearthSQLite", dependencies: ["HearthModel", "HearthStorage", "CSQLite"], path: "Core/SQLite",
            exclude: ["CSQLite"]),

        // Server.

        // The tool.

        // Tests, one folder a target.
        .testTarget(
            name: "HearthSQLiteTests", dependencies: ["HearthModel", "HearthStorage", "HearthSQLite"],
            path: "Tests/HearthSQLiteTests"),
    ],
    swiftLanguageModes: [.v6]
)
