import Glibc
import HearthToolSupport

/// A running instance.
struct RunningServer {
    var host: String
    var port: Int
    /// Nil for a server that the bench did not start.
    var process: ChildProcess?
    /// Of a server on this machine that the bench did not start.
    var foreignProcess: pid_t?
    /// From the start of the process to the first answer.
    var startMilliseconds = 0.0
    /// The command and the folder of a process that the bench has started.
    var command: (words: [String], folder: String)?

    /// Ends the process, and starts it again with its data; nil for a server that the bench did not start.
    func restarted() throws(ToolFailure) -> RunningServer? {
        guard let process, let command else { return nil }
        process.stop()
        return try ServerStart.start(command.words, port: port, folder: command.folder)
    }

    /// CPU time up to now; nil when the server's process is not known.
    var processorSeconds: Double? {
        process?.processorSeconds ?? foreignProcess.map { ProcessTimes.seconds(family: $0) }
    }
}
