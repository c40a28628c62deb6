import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// In which form a call's messages travel.
package enum MessageFormat: Sendable {
    case protobuf
    case json(JSONOptions)

    package var isJSON: Bool {
        if case .json = self { true } else { false }
    }

    package func encode(_ message: some WireMessage) -> [UInt8] {
        switch self {
        case .protobuf: message.protobuf()
        case .json(let options): message.json(options)
        }
    }
}

/// One call of a client as the service sees it, whatever carries it: gRPC, REST, WebChannel.
///
/// All methods are called on `loop`'s thread. After the end of a call its methods do nothing.
package protocol ServiceCall: AnyObject, Sendable {
    var loop: EventLoop { get }
    var format: MessageFormat { get }
    /// For whom the request is carried out.
    var identity: Identity { get }
    /// On whose account it is.
    var requester: Requester { get }
    /// Whether the answer is over, or nobody waits for it any more.
    var isFinished: Bool { get }
    /// Set when the client has gone; may be read from any thread.
    var cancellation: Cancellation { get }
    /// Called when there is room again after `send` returned false.
    var onWritable: (() -> Void)? { get set }
    /// Sends one message; false when the client takes no more for now.
    @discardableResult
    func send(_ message: [UInt8]) -> Bool
    func finish(_ status: Status)
    /// Answers a unary call. What was asked for is done, so nothing may make an error of it.
    func respond(_ message: [UInt8])
}

extension ServiceCall {
    package func respond(_ message: [UInt8]) {
        send(message)
        finish(.ok)
    }

    package func respond(_ message: some WireMessage) {
        respond(format.encode(message))
    }

    /// Runs `body` on the call's loop: now when this is its thread.
    package func onLoop(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }
}
