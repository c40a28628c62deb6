import HearthToolSupport
import Glibc

enum ServerStart {
    private static let secondsMax = 60.0

    /// Starts a server, and asks it for a document until it answers.
    static func start(_ words: [String], port: Int, folder: String) throws(ToolFailure) -> RunningServer {
        let start = Stopwatch()
        let process = try ChildProcess(words, logPath: folder + "/log")
        try wait(for: process, words[0]) {
            // Any response is sufficient, including one that the document does not exist.
            let path = "/v1/projects/bench/databases/(default)/documents/c/d"
            return Loopback.request(port: port, "GET", path)?.hasPrefix("HTTP/1.1 ") ?? false
        }
        return RunningServer(
            host: "127.0.0.1", port: port, process: process, startMilliseconds: start.seconds * 1000,
            command: (words, folder))
    }

    /// Polls a condition until it holds; fails when that takes too long.
    static func wait(for process: ChildProcess, _ name: String, _ isUp: () -> Bool) throws(ToolFailure) {
        let start = Stopwatch()
        while !isUp() {
            if process.hasEnded || start.seconds > secondsMax {
                let last = process.log.split(separator: "\n").last.map(String.init) ?? "no output"
                process.stop()
                throw ToolFailure(.unavailable, "\(name) did not come up: \(last)")
            }
            usleep(200)
        }
    }
}
