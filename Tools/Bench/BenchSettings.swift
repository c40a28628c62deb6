import HearthHost
import HearthToolSupport
import Glibc

/// The settings of the bench.
struct BenchSettings: Sendable {
    var workloads = Workload.all
    var address: String?
    var isInMemory: Bool
    var peers: [String] = []
    var runs: Int
    var seconds: Double
    var documents: Int
    var many: Int
    var large: Int
    var huge: Int
    var leaves: Int
    var connections: Int
    var emulatorHeap: String
    var folder: String
    var jsonPath: String?
    var plotPath: String?
    var seed: UInt64

    static let peerNames = ["sqlite", "store", "postgres", "nginx", "redis", "emulator"]

    static let options: [Option] = [
        Option(
            "address", "HOST:PORT",
            "A running server to measure, in which the project \"bench\" stays. Default: one of its own for each run of "
                + "the bench."),
        Option("memory", nil, "The own server keeps everything in memory."),
        Option(
            "peers", "LIST",
            "Others to measure in the same run: \(peerNames.joined(separator: ", ")), or all. Default none."
        ),
        Option("runs", "N", "Runs of each workload; figures are their medians. Default 5."),
        Option("seconds", "N", "Length of a run; may be a fraction. Default 5."),
        Option("documents", "N", "Documents that the commit and get workloads work on. Default 20000."),
        Option("many", "N", "Documents that commit-32-many works on. Default 500000."),
        Option("large", "N", "Documents of the large collection. Default 100000."),
        Option("huge", "N", "Documents of the huge collection. Default 1000000."),
        Option("leaves", "N", "Leaves of the Realtime Database's large tree. Default 10000000."),
        Option("connections", "N", "Idle connections that are opened. Default 5000."),
        Option("emulator-heap", "SIZE", "Of the emulator's Java, as -Xmx takes it. Default 3g."),
        Option("folder", "FOLDER", "Where servers keep their data for the time of the bench. Default /var/tmp."),
        Option("json", "FILE", "Write the figures as JSON; - for standard output."),
        Option("svg", "FILE", "Draw how Hearth compares with its peers and with what it has to reach."),
        Option("seed", "N", "Of the random numbers. Default 1."),
    ]

    private static let smallDocuments = 1000
    /// Leaves of the Realtime Database's small tree.
    static let smallLeaves = 10_000

    init(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: Self.options, argumentsMax: Workload.all.count)
        if !parsed.arguments.isEmpty { workloads = try Workload.chosen(parsed.arguments) }
        address = parsed.string("address")
        isInMemory = parsed.flag("memory")
        peers = try Self.peers(parsed.string("peers"))
        runs = try parsed.integer("runs", 1...1000, default: 5)
        seconds = try parsed.number("seconds", 0.1...3600, default: 5)
        documents = try parsed.integer("documents", 100...10_000_000, default: 20_000)
        many = try parsed.integer("many", 100...100_000_000, default: 500_000)
        large = try parsed.integer("large", 1000...10_000_000, default: 100_000)
        huge = try parsed.integer("huge", 1000...100_000_000, default: 1_000_000)
        leaves = try parsed.integer("leaves", 20_000...1_000_000_000, default: 10_000_000)
        connections = try parsed.integer("connections", 1...20_000, default: 5000)
        emulatorHeap = parsed.string("emulator-heap") ?? "3g"
        folder = Self.absolute(parsed.string("folder") ?? "/var/tmp")
        jsonPath = parsed.string("json").map(Self.absolute)
        plotPath = parsed.string("svg").map(Self.absolute)
        seed = UInt64(try parsed.integer("seed", 0...Int.max, default: 1))
    }

    func documents(_ size: Workload.CollectionSize) -> Int {
        switch size {
        case .small: Self.smallDocuments
        case .large: large
        case .huge: huge
        }
    }

    private static func peers(_ list: String?) throws(ToolFailure) -> [String] {
        var peers: [String] = []
        for name in (list ?? "").split(separator: ",").map(String.init) {
            if name == "all" {
                peers = peerNames
            } else if peerNames.contains(name) {
                peers.append(name)
            } else {
                throw .usage("There is no peer \"\(name)\"\(Spelling.hint(for: name, among: peerNames))")
            }
        }
        return peers
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), path != "-", let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return String(cString: folder) + "/" + path
    }
}
