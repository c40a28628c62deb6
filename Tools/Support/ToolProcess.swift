import Glibc
import HearthNetwork

/// The common frame of every program of this package.
package enum ToolProcess {
    /// Runs `body` with the arguments and ends the process, with the code of its failure.
    /// - Parameter name: the prefix of messages.
    package static func run(named name: String, _ body: ([String]) throws(ToolFailure) -> Void) -> Never {
        // Exceeding the file size limit is an ordinary error of the write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        ProcessMemory.giveBackLargeBlocks()
        keepStandardDescriptors()
        do throws(ToolFailure) {
            try body(Array(CommandLine.arguments.dropFirst()))
            exit(0)
        } catch {
            Output.error("\(name): \(error.message)")
            exit(error.code.rawValue)
        }
    }

    /// Standard streams that the caller has closed stay without use: the next file that is opened would get the number, and
    /// messages would be written into it. Writes to them fail with EBADF, reads find the end.
    private static func keepStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // The lowest free number: those below are in use.
            _ = open("/dev/null", O_RDONLY)
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
    /// - Parameter advice: the advice when there is no such program.
    /// - Throws: a failure that names the expected path.
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
