import HearthToolSupport
import Glibc
import HearthHost

/// A program that the bench has started.
final class ChildProcess: Sendable {
    let id: pid_t
    /// The file of its output, both streams.
    let logPath: String

    /// The time after which a program that does not end is killed: without free memory the end may take forever.
    private static let endSecondsMax = 15.0

    /// - Parameters:
    ///   - words: the program, searched on the path, and its arguments.
    ///   - endSignal: the signal that ends it in an orderly way, without waiting for clients.
    init(_ words: [String], logPath: String, endSignal: Int32 = SIGTERM) throws(ToolFailure) {
        self.logPath = logPath
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, logPath, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // The bench blocks signals; the child must not, because a signal ends it.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var result: Int32 = 0
        let id = BenchHousekeeping.children.insert(endSignal: endSignal) { () -> pid_t? in
            var id: pid_t = 0
            result = posix_spawnp(&id, words[0], &actions, &attributes, &arguments, environ)
            return result == 0 ? id : nil
        }
        guard let id else {
            throw ToolFailure(.failed, "Cannot start \(words[0]): \(String(cString: strerror(result))).")
        }
        self.id = id
    }

    var hasEnded: Bool {
        var status: Int32 = 0
        return waitpid(id, &status, WNOHANG) != 0
    }

    /// Waits for its end.
    /// - Returns: the exit code; negative for the number of the signal that ended it.
    @discardableResult
    func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0, errno == EINTR {}
        BenchHousekeeping.children.remove(id)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
    }

    /// Ends it, by its signal or by force.
    func stop() { BenchHousekeeping.children.stop([id], withinSeconds: Self.endSecondsMax) }

    var log: String {
        let bytes: [UInt8]?
        do { bytes = try TextFile.read(logPath) } catch { return "" }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    var residentBytes: Int { ProcessFigures.residentBytes(process: String(id)) ?? 0 }

    /// User and system time of all its threads and of the processes that it has started.
    var processorSeconds: Double { ProcessTimes.seconds(family: id) }

    /// Runs a program to its end.
    /// - Throws: with the last line of its output, unless it ends with 0.
    static func run(_ words: [String], logPath: String) throws(ToolFailure) -> String {
        unlink(logPath)
        let child = try ChildProcess(words, logPath: logPath)
        let code = child.wait()
        let log = child.log
        if code != 0 {
            let last = log.split(separator: "\n").last.map(String.init) ?? "no output"
            throw ToolFailure(.failed, "\(words[0]) ended with \(code): \(last)")
        }
        return log
    }
}
