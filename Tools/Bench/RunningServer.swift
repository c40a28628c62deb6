import Glibc

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

    /// CPU time up to now; nil when the server's process is not known.
    var processorSeconds: Double? {
        process?.processorSeconds ?? foreignProcess.map { ProcessTimes.seconds(family: $0) }
    }
}
