/// Why a handshake failed, in terms of HTTP.
package struct WebSocketHandshakeFailure: Error, Hashable, Sendable {
    /// 400, 405 or 426.
    package var status: Int
    package var reason: String

    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}
