import HearthModel
import HearthHost
import HearthToolSupport
import Glibc

/// The program `hearth-bench`.
enum Bench {
    static func run(_ arguments: [String]) throws(ToolFailure) {
        switch arguments.first {
        case ConstantServer.name?: return try ConstantServer.run(Array(arguments.dropFirst()))
        case "--version"?: return Output.line("hearth-bench \(HearthVersion.withCommit)")
        default: break
        }
        if arguments.contains("--help") || arguments.contains("-h") { return Output.line(help()) }
        try run(try BenchSettings(arguments))
    }

    private static func help() -> String {
        let width = (Workload.all.map(\.name.count).max() ?? 0) + 4
        let list = Workload.all.map { workload in
            "  " + workload.name + String(repeating: " ", count: width - workload.name.count - 2) + workload.summary
        }
        return """
            Usage: hearth-bench [workload …] [options]

            Drives named workloads against a server and prints a table. Without names, all of them. A workload that is
            compared with another, as commit-32-many is with commit-32, brings that one with it.

            \(list.joined(separator: "\n"))

            \(OptionHelp.string(BenchSettings.options))

            Load comes from this process, on the same machine, over gRPC, HTTP/1.1 or Redis' protocol. A figure is the median of
            the runs, with the least and the greatest of them, and in percent of the median how far these two are apart: a
            difference that is smaller says nothing. Its ratio compares it with Hearth's own in the same run of the bench;
            above 1 Hearth is better. "server cpu" and "generator cpu" are CPU times of one operation, on the server, where
            its process is on this machine, and for making the load. "fdatasync p50" is what a page of 4 KiB takes in
            --folder until it is durable, measured after each run of a workload that waits for the disk. A second table has
            what Hearth has to reach.
            """
    }

    private static func run(_ settings: BenchSettings) throws(ToolFailure) {
        let housekeeping = BenchHousekeeping(folder: settings.folder)
        defer { housekeeping.end() }
        // Servers read the configuration of the folder in which they are started; this folder has none.
        chdir(housekeeping.path)
        // Servers inherit the bench's limit.
        FileLimit.raise()
        var report = BenchReport(settings)
        let disk = DiskLatency(folder: housekeeping.folder("latency"))
        for target in try BenchTarget.all(settings) { try measure(target, settings, housekeeping, disk, &report) }
        if settings.jsonPath != "-" { Output.string(report.table()) }
        try report.writeJSON(settings.jsonPath)
        if let path = settings.plotPath { try OutputFile.write(BenchPlot(report).svg(), to: path) }
    }

    private static func measure(
        _ target: BenchTarget, _ settings: BenchSettings, _ housekeeping: BenchHousekeeping, _ disk: DiskLatency,
        _ report: inout BenchReport
    ) throws(ToolFailure) {
        var session: (any BenchSession)?
        defer { session?.stop() }
        for var workloads in Workload.rounds(of: settings.workloads.filter { target.serves($0) }) {
            for run in 1...settings.runs {
                for workload in workloads {
                    do throws(ToolFailure) {
                        Output.error("bench: \(target.name): \(workload.name), run \(run) of \(settings.runs)")
                        if session == nil { session = try target.start(settings, housekeeping) }
                        report.add(try session?.run(workload) ?? [], to: target.name)
                        guard target.isDurable, workload.isDurable else { continue }
                        // Now, because the disk of a minute ago may be another one.
                        report.add(try disk.figure(workload.name), to: target.name)
                    } catch {
                        // A peer that fails leaves a gap in the table; a failure of a measured server ends the run.
                        if !target.isPeer { throw error }
                        Output.error("bench: \(target.name): \(workload.name): \(error.message)")
                        report.addGap(workload.name, target.name, error.message)
                        // A peer that is not installed is missing for the next workload, too.
                        if session == nil { return }
                        // A peer that failed, perhaps out of memory, must not be measured further.
                        session?.stop()
                        session = nil
                        workloads.removeAll { $0.name == workload.name }
                    }
                }
            }
        }
    }
}
