import HearthToolSupport

/// A server that was started elsewhere.
struct RemoteServer: FirestoreServer {
    let host: String
    let port: Int
    let canStart = false

    private static let localHosts = ["127.0.0.1", "::1", "localhost"]

    func start() throws(ToolFailure) -> RunningServer {
        var server = RunningServer(host: host, port: port)
        if Self.localHosts.contains(host) { server.foreignProcess = ProcessTimes.listener(port: port) }
        return server
    }
}
