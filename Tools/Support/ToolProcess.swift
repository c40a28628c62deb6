import Glibc
import HearthNetwork

/// What every program of this package does around its work.
package enum ToolProcess {
    /// Runs `body` with the arguments and ends the process, with the code of its failure.
    /// - Parameter name: what messages begin with.
    package static func run(named name: String, _ body: ([String]) throws(ToolFailure) -> Void) -> Never {
        // A file that may not become larger is an ordinary error of the write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        ProcessMemory.giveBackLargeBlocks()
        do throws(ToolFailure) {
            try body(Array(CommandLine.arguments.dropFirst()))
            exit(0)
        } catch {
            Output.error("\(name): \(error.message)")
            exit(error.code.rawValue)
        }
    }

    /// The path of the running program's file.
    package static func path() throws(ToolFailure) -> String {
        guard let path = realpath("/proc/self/exe", nil) else {
            throw ToolFailure(.software, "The program's own file cannot be found.")
        }
        defer { free(path) }
        return String(cString: path)
    }

    /// The path of another program that is built beside this one.
    /// - Parameter advice: what to do when there is no such file.
    /// - Throws: a failure that says where it was expected.
    package static func sibling(_ name: String, advice: String) throws(ToolFailure) -> String {
        let own = try path()
        let folder = own.lastIndex(of: "/").map { String(own[..<$0]) } ?? ""
        let other = folder + "/" + name
        guard access(other, X_OK) == 0 else {
            throw ToolFailure(.unavailable, "There is no program \(other): \(advice)")
        }
        return other
    }
}
