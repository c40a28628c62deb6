import HearthToolSupport

/// A server that was started elsewhere.
struct RemoteServer: FirestoreServer {
    let host: String
    let port: Int
    let canStart = false

    func start() throws(ToolFailure) -> RunningServer { RunningServer(host: host, port: port) }
}
