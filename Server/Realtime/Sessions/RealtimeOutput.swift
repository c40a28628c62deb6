import HearthNetwork

/// The output for a client's messages: a socket or a stream. Writing returns false when there is no capacity for more.
protocol RealtimeOutput: AnyObject {
    var loop: EventLoop { get }
    func write(_ string: [UInt8]) -> Bool
    func write(_ push: RealtimePush, tag: Int64?) -> Bool
    /// A large message begins; the pieces of its body follow.
    func begin(_ message: LargeMessage) -> Bool
    func write(piece: [UInt8]) -> Bool
    func end(_ message: LargeMessage) -> Bool
    /// The waiting messages cannot be sent: the client makes the server hold too much, or a file cannot be read.
    func sendingFailed()
    /// Fewer messages wait than before.
    func hasSentSome()
}
