import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// One call of a client as the service sees it, over any transport: gRPC, REST, WebChannel.
///
/// All methods are called on `loop`'s thread. After the end of a call its methods do nothing.
package protocol ServiceCall: AnyObject, Sendable {
    var loop: EventLoop { get }
    var format: MessageFormat { get }
    /// The identity of the caller.
    var identity: Identity { get }
    /// The account that the call is counted for.
    var requester: Requester { get }
    /// The values of the call's header `OnceHeader.name`.
    var onceValues: [String] { get }
    /// The values of the call's header `TriggersHeader.name`.
    var triggersValues: [String] { get }
    /// Whether the response has ended, or the client no longer waits for it.
    var isFinished: Bool { get }
    /// Set when the client disconnects; may be read from any thread.
    var cancellation: Cancellation { get }
    /// Called when there is capacity again after `send` returned false.
    var onWritable: (() -> Void)? { get set }
    /// Sends one message; false when the client takes no more for now.
    @discardableResult
    func send(_ message: [UInt8]) -> Bool
    /// Sends several messages; false when the client takes no more for now.
    @discardableResult
    func send(_ messages: MessageBatch) -> Bool
    func finish(_ status: Status)
    /// The call is about to wait for a worker or a long read, as long as others use them: the memory of its request must
    /// not keep other requests waiting meanwhile.
    /// - Throws: RESOURCE_EXHAUSTED when requests of the account hold too much while they wait.
    func postpone() throws(Status)
    /// Responds to a unary call. The operation is complete, so the response must not become an error.
    func respond(_ message: [UInt8])
}

extension ServiceCall {
    /// A call whose request is not counted.
    package func postpone() throws(Status) {}

    package func send(_ messages: MessageBatch) -> Bool { messages.messages.reduce(true) { send($1) } }

    package func respond(_ message: [UInt8]) {
        send(message)
        finish(.ok)
    }

    package func respond(_ message: some WireMessage) {
        respond(format.encode(message))
    }

    /// Runs `body` on the call's loop: immediately when this is its thread.
    package func onLoop(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }
}
