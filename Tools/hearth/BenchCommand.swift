import Glibc
import HearthToolSupport

/// `hearth bench`: runs the program `hearth-bench`. The command is deprecated and stays for one more version.
enum BenchCommand {
    static let command = ToolCommand(
        name: "bench", summary: "Measure a server: the same as hearth-bench.",
        help: {
            "Usage: hearth bench [workload …] [options]\n\nRuns the program hearth-bench beside this one; see `hearth-bench --help`."
        },
        run: { arguments throws(ToolFailure) in
            let program = try ToolProcess.sibling(
                "hearth-bench", advice: "`make bench` and `make release` in the sources build it; put it beside hearth."
            )
            var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
            words.append(nil)
            execv(program, words)
            throw ToolFailure(.software, "Cannot run \(program): \(String(cString: strerror(errno))).")
        })
}
