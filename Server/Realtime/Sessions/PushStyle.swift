import HearthTree

/// The form in which a client receives changes.
enum PushStyle {
    /// Of a socket or a poll.
    case messages
    /// Of a stream.
    /// - Parameter depth: of the listener's location.
    case events(depth: Int)

    var form: TreeJSON.Form { if case .messages = self { .export } else { .plain } }

    func shows(_ push: RealtimePush) -> Bool { if case .messages = self { true } else { push.isVisible } }

    func bytes(of push: RealtimePush, _ tag: Int64?) -> [UInt8] {
        switch self {
        case .messages: push.message(tag: tag)
        case .events(let depth): push.event(below: depth)
        }
    }

    func sizeBytes(of push: RealtimePush, _ tag: Int64?) -> Int {
        switch self {
        case .messages: push.message.count
        case .events(let depth): push.event(below: depth).count
        }
    }

    private func parts(_ push: RealtimePush, _ tag: Int64?) -> (head: [UInt8], tail: [UInt8]) {
        switch self {
        case .messages: (push.messageHead, RealtimeServerMessage.pushTail(tag: tag))
        case .events(let depth): (push.eventHead(below: depth), RealtimePush.eventTail)
        }
    }

    func message(_ push: RealtimePush, _ tag: Int64?, _ body: LargeJSON) -> LargeMessage {
        let parts = parts(push, tag)
        return LargeMessage(head: parts.head, body: body, tail: parts.tail)
    }

    func string(_ push: RealtimePush, _ tag: Int64?, _ json: [UInt8]) -> [UInt8] {
        let parts = parts(push, tag)
        return parts.head + json + parts.tail
    }
}
