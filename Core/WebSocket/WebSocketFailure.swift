/// The peer violated the protocol or exceeded a limit: the connection must be closed with this code.
package struct WebSocketFailure: Error, Hashable, Sendable {
    package var code: WebSocketCloseCode
    /// Short enough for a close frame.
    package var reason: String

    package init(_ code: WebSocketCloseCode, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    static func violation(_ reason: String) -> WebSocketFailure { WebSocketFailure(.protocolError, reason) }
}
