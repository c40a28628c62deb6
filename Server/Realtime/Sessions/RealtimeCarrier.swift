import HearthModel
import HearthNetwork

/// Sends the messages of a session: over a WebSocket, or over the requests of a long-polling client. All calls are made
/// on one loop.
package protocol RealtimeCarrier: AnyObject {
    var loop: EventLoop { get }
    var peer: RealtimePeer { get }
    /// The bytes in memory that wait to be sent to the client.
    var queuedBytes: Int { get }
    /// Whether a message in a file also waits to be sent.
    var hasLarge: Bool { get }
    /// Sets the account that is charged for the client from now on.
    func belongs(to requester: Requester)
    func send(_ message: [UInt8])
    func send(_ message: LargeMessage)
    /// Sends a push that other clients may receive, too.
    /// - Returns: false when there is no capacity for it.
    func send(_ push: RealtimePush, tag: Int64?) -> Bool
    /// Delivers no messages until `resumeReading`.
    func pauseReading()
    func resumeReading()
    /// Ends the connection. `RealtimeSession.carrierEnded` is always called afterwards.
    func end(_ fault: RealtimeFault)
}
