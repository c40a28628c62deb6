import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree

/// What waits for one client, in its order. Belongs to a loop.
///
/// Small messages wait in memory, which counts as the client's account's and connection's. Large ones wait in files; a
/// large change that is just being written down holds up what comes after it. `@unchecked Sendable`: belongs to the loop.
final class RealtimeOutbox: @unchecked Sendable {
    enum Message {
        case small([UInt8])
        case large(LargeMessage)
        /// A small one that others get, too.
        case push(RealtimePush, tag: Int64?)
        /// A large one that isn't in its file yet.
        case unwritten(RealtimePush, tag: Int64?)
    }

    /// What a message costs beside its bytes.
    private static let messageBytes = 64

    private let style: PushStyle
    private let service: RealtimeService
    private let loop: EventLoop
    private var held: HeldBytes
    private var messages = Queue<(message: Message, bytes: Int)>()
    private var isClosed = false
    /// Bytes of small messages.
    private(set) var memoryBytes = 0
    /// Bytes of large ones, about.
    private(set) var largeBytes = 0

    /// What was waited for is there.
    var onReady: (() -> Void)?
    /// A change couldn't be written down: all changes that waited are dropped, and the client must be sent the whole.
    var onLost: (() -> Void)?

    init(_ style: PushStyle, for requester: Requester, _ service: RealtimeService, on loop: EventLoop) {
        self.style = style
        self.service = service
        self.loop = loop
        held = HeldBytes(service.large.memory.unread, for: requester)
    }

    var isEmpty: Bool { messages.isEmpty }
    /// Whether something large waits.
    var hasLarge: Bool { largeBytes > 0 }

    /// The client is on another account from now on. False when that may not hold so much.
    func belongs(to requester: Requester) -> Bool { held.move(to: requester) }

    /// False when the client makes us hold too much; the message is lost then.
    func add(_ string: [UInt8]) -> Bool { add(.small(string), bytes: string.count) }

    private func add(_ message: Message, bytes: Int) -> Bool {
        if isClosed { return true }
        let bytes = bytes + Self.messageBytes
        guard held.set(memoryBytes + bytes) else { return false }
        memoryBytes += bytes
        messages.append((message, bytes))
        return true
    }

    func add(_ message: LargeMessage) {
        if isClosed { return }
        largeBytes += message.count
        messages.append((.large(message), message.count))
    }

    /// False when the client has to be sent the whole when it has taken what waits.
    func add(_ push: RealtimePush, tag: Int64?) -> Bool {
        if isClosed { return true }
        guard push.isLarge else {
            let bytes = style.sizeBytes(of: push, tag)
            return memoryBytes + bytes <= Limits.realtimeQueueBytesMax && add(.push(push, tag: tag), bytes: bytes)
        }
        if !style.shows(push) { return true }
        let bytes = push.sizeBytes
        if largeBytes > 0, largeBytes + bytes > Limits.realtimePushesWaitingBytesMax { return false }
        let data = push.data(style.form, service) { [weak self, loop] in
            loop.execute { [weak self] in self?.written() }
        }
        switch data {
        case .failed: return false
        case .written(.file(let body)): add(style.message(push, tag, body))
        case .written(.memory(let json)): return add(style.string(push, tag, json))
        case .writing:
            largeBytes += bytes
            messages.append((.unwritten(push, tag: tag), bytes))
        }
        return true
    }

    /// Lets go of trees whose text is in a file now.
    private func written() {
        if isClosed { return }
        let waiting = messages
        messages = Queue()
        var isLost = false
        waiting.forEach { entry in
            guard case .unwritten(let push, let tag) = entry.message else { return messages.append(entry) }
            switch push.data(style.form, service, nil) {
            case .writing: messages.append(entry)
            case .failed: isLost = true
            case .written(.file(let body)):
                let message = style.message(push, tag, body)
                largeBytes += message.count - entry.bytes
                messages.append((.large(message), message.count))
            case .written(.memory(let json)):
                largeBytes -= entry.bytes
                let string = style.string(push, tag, json)
                let bytes = string.count + Self.messageBytes
                isLost = isLost || !held.set(memoryBytes + bytes)
                memoryBytes += bytes
                messages.append((.small(string), bytes))
            }
        }
        if isLost { lose() }
        onReady?()
    }

    private func lose() {
        messages.retain { entry in
            switch entry.message {
            case .small, .large: true
            case .push, .unwritten: false
            }
        }
        memoryBytes = 0
        largeBytes = 0
        messages.forEach { entry in
            if case .large = entry.message { largeBytes += entry.bytes } else { memoryBytes += entry.bytes }
        }
        _ = held.set(memoryBytes)
        onLost?()
    }

    /// The message whose turn it is; nil when there is none, or it isn't written yet.
    var first: Message? {
        guard let first = messages.first?.message else { return nil }
        if case .unwritten = first { return nil }
        return first
    }

    func removeFirst() {
        guard let (message, bytes) = messages.popFirst() else { return }
        switch message {
        case .small, .push:
            memoryBytes -= bytes
            _ = held.set(memoryBytes)
        case .large, .unwritten: largeBytes -= bytes
        }
    }

    /// Nothing will be sent any more.
    func close() {
        isClosed = true
        messages = Queue()
        memoryBytes = 0
        largeBytes = 0
        _ = held.set(0)
        onReady = nil
        onLost = nil
    }
}

/// How a client is told of changes.
enum PushStyle {
    /// Of a socket or a poll.
    case messages
    /// Of a stream.
    /// - Parameter depth: of the place that is listened to.
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
        case .messages: (push.messageHead, RealtimeMessages.pushTail(tag: tag))
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
