import HearthLoadClient

/// Closes a connection when the server has been silent for long: a lost network, and a server that is stopped, reset nothing.
///
/// It asks several times, because the loop's thread also writes what arrives: what waits behind a slow disk or pipe is a sign of
/// life once it is read.
///
/// `@unchecked Sendable`: belongs to the loop's thread.
final class ConnectionWatch: @unchecked Sendable {
    private let client: HTTP2Client
    private let pauseMilliseconds: Int
    private var receivedBytes = 0
    private var silentPings = 0

    private static let silentPingsMax = 3

    /// - Parameter pauseMilliseconds: between two questions. The connection is closed after three without an answer.
    init(_ client: HTTP2Client, pauseMilliseconds: Int = 10_000) {
        self.client = client
        self.pauseMilliseconds = pauseMilliseconds
    }

    func start() {
        client.loop.execute { [self] in tick() }
    }

    private func tick() {
        if client.isClosed { return }
        if client.receivedBytes != receivedBytes { silentPings = 0 }
        receivedBytes = client.receivedBytes
        if silentPings >= Self.silentPingsMax { return client.close() }
        silentPings += 1
        client.ping()
        client.loop.schedule(afterMilliseconds: pauseMilliseconds) { [self] in tick() }
    }
}
