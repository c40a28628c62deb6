/// Whether there is a connection to the server, as far as the client knows.
enum OnlineState: Sendable {
    case unknown, online, offline
}
