// swift-tools-version: 6.0
import PackageDescription

// The folders are the architecture: see docs/architecture.md. Dependencies point inward only:
// Model <- Wire <- Storage <- Services <- the tool.
let package = Package(
    name: "hearth",
    products: [
        .library(name: "HearthModel", targets: ["HearthModel"])
    ],
    targets: [
        // Core: what server and client share; no sockets, no HTTP.
        .target(name: "HearthModel", path: "Core/Model"),
        .target(name: "HearthWire", dependencies: ["HearthModel"], path: "Core/Wire"),
        .target(name: "HearthStorage", dependencies: ["HearthModel", "HearthWire"], path: "Core/Storage"),

        // Server.

        // The tool.

        // Tests, one folder a target.
        .testTarget(
            name: "HearthWireTests", dependencies: ["HearthModel", "HearthWire"], path: "Tests/HearthWireTests",
            exclude: ["Golden"]),
    ],
    swiftLanguageModes: [.v6]
)
