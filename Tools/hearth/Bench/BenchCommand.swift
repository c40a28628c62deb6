import Glibc
import HearthServer

/// `hearth bench`
enum BenchCommand {
    static let command = Tool.Command(
        name: "bench", summary: "Measure a server, and others beside it.", help: { help() },
        run: { arguments throws(ToolFailure) in try run(try BenchSettings(arguments)) })

    static let options: [Option] = [
        Option(
            "address", "HOST:PORT", "A running server to measure. Default: one of its own for each run of the bench."),
        Option("memory", nil, "The own server keeps everything in memory."),
        Option("peers", "LIST", "Others to measure in the same run: emulator, postgres, sqlite, or all. Default none."),
        Option("runs", "N", "Runs of each workload; figures are their medians. Default 3."),
        Option("seconds", "N", "Length of a run. Default 5."),
        Option("documents", "N", "Documents that the commit and get workloads work on. Default 20000."),
        Option("large", "N", "Documents of the large collection. Default 100000."),
        Option("folder", "FOLDER", "Where servers keep their data for the time of the bench. Default /var/tmp."),
        Option("json", "FILE", "Write the figures as JSON; - for standard output."),
        Option("seed", "N", "Of the random numbers. Default 1."),
    ]

    private static func help() -> String {
        let width = (Workload.all.map(\.name.count).max() ?? 0) + 4
        let list = Workload.all.map { workload in
            "  " + workload.name + String(repeating: " ", count: width - workload.name.count - 2) + workload.summary
        }
        return """
            Usage: hearth bench [workload …] [options]

            Drives named workloads against a server and prints a table. Without names, all of them.

            \(list.joined(separator: "\n"))

            \(OptionHelp.text(options))

            Load comes from this process, on the same machine, over gRPC. A figure's ratio compares it with Hearth's own in the
            same run of the bench; above 1 Hearth is better.
            """
    }

    private static func run(_ settings: BenchSettings) throws(ToolFailure) {
        let housekeeping = BenchHousekeeping(folder: settings.folder)
        defer { housekeeping.end() }
        // Servers read the configuration of the folder that they are started in; this one has none.
        chdir(housekeeping.path)
        var report = BenchReport(settings)
        for target in try BenchTarget.all(settings) {
            do throws(ToolFailure) {
                Output.error("bench: \(target.name)")
                try measure(target, settings, housekeeping, &report)
            } catch {
                // A peer that fails is a gap in the table; what is measured must not fail.
                if target.isPeer { Output.error("bench: \(target.name): \(error.message)") } else { throw error }
            }
        }
        if settings.jsonPath != "-" { Output.text(report.table()) }
        try report.writeJSON(settings.jsonPath)
    }

    private static func measure(
        _ target: BenchTarget, _ settings: BenchSettings, _ housekeeping: BenchHousekeeping, _ report: inout BenchReport
    ) throws(ToolFailure) {
        let workloads = settings.workloads.filter { target.serves($0) }
        if workloads.isEmpty { return }
        let session = try target.start(settings, housekeeping)
        defer { session.stop() }
        for workload in workloads {
            for run in 1...settings.runs {
                Output.error("bench: \(target.name): \(workload.name), run \(run) of \(settings.runs)")
                report.add(try session.run(workload), to: target.name)
            }
        }
    }
}

/// What the bench was told.
struct BenchSettings: Sendable {
    var workloads = Workload.all
    var address: String?
    var isInMemory: Bool
    var peers: [String] = []
    var runs: Int
    var seconds: Int
    var documents: Int
    var large: Int
    var folder: String
    var jsonPath: String?
    var seed: UInt64

    static let peerNames = ["emulator", "postgres", "sqlite"]

    init(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: BenchCommand.options, argumentsMax: Workload.all.count)
        if !parsed.arguments.isEmpty {
            workloads = []
            for name in parsed.arguments {
                guard let workload = Workload.all.first(where: { $0.name == name }) else {
                    throw .usage(
                        "There is no workload \"\(name)\"\(Spelling.hint(for: name, among: Workload.all.map(\.name)))")
                }
                workloads.append(workload)
            }
        }
        address = parsed.string("address")
        isInMemory = parsed.flag("memory")
        if let list = parsed.string("peers") {
            for name in list.split(separator: ",").map(String.init) {
                if name == "all" {
                    peers = Self.peerNames
                } else if Self.peerNames.contains(name) {
                    peers.append(name)
                } else {
                    throw .usage("There is no peer \"\(name)\"\(Spelling.hint(for: name, among: Self.peerNames))")
                }
            }
        }
        runs = try parsed.integer("runs", 1...1000, default: 3)
        seconds = try parsed.integer("seconds", 1...3600, default: 5)
        documents = try parsed.integer("documents", 100...10_000_000, default: 20_000)
        large = try parsed.integer("large", 1000...10_000_000, default: 100_000)
        folder = Self.absolute(parsed.string("folder") ?? "/var/tmp")
        jsonPath = parsed.string("json").map(Self.absolute)
        seed = UInt64(try parsed.integer("seed", 0...Int.max, default: 1))
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), path != "-", let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return String(cString: folder) + "/" + path
    }
}
