/// A running instance.
struct RunningServer {
    var host: String
    var port: Int
    /// Nil for a server that the bench did not start.
    var process: ChildProcess?
    /// From the start of the process to the first answer.
    var startMilliseconds = 0.0
}
