import HearthConcurrency
import HearthModel
import HearthNetwork

/// The messages that wait for one client, in their order. Belongs to a loop.
/// Small messages wait in memory, which is charged to the client's account and connection. Large ones wait in files; a
/// large change whose file is being written delays the messages behind it. `@unchecked Sendable`: belongs to the loop.
final class RealtimeOutbox: @unchecked Sendable {
    enum Message {
        case small([UInt8])
        case large(LargeMessage)
        /// A small message that other clients receive, too.
        case push(RealtimePush, tag: Int64?)
        /// A large message whose file isn't written yet.
        case unwritten(RealtimePush, tag: Int64?)
    }

    /// The memory of a message in addition to its bytes.
    private static let messageBytes = 64

    private let style: PushStyle
    private let service: RealtimeService
    private let loop: EventLoop
    private var held: HeldBytes
    private var messages = Queue<(message: Message, bytes: Int)>()
    private var isClosed = false
    /// The bytes of small messages.
    private(set) var memoryBytes = 0
    /// The approximate bytes of large messages.
    private(set) var largeBytes = 0

    /// The file that was waited for is written.
    var onReady: (() -> Void)?
    /// The file of a change couldn't be written: all waiting changes are dropped, and the client must receive all data.
    var onLost: (() -> Void)?

    init(_ style: PushStyle, for requester: Requester, _ service: RealtimeService, on loop: EventLoop) {
        self.style = style
        self.service = service
        self.loop = loop
        held = HeldBytes(service.large.memory.unread, for: requester)
    }

    var isEmpty: Bool { messages.isEmpty }
    /// Whether a large message waits.
    var hasLarge: Bool { largeBytes > 0 }

    /// Charges another account from now on. False when that account may not hold so much.
    func belongs(to requester: Requester) -> Bool { held.move(to: requester) }

    /// False when the client makes the server hold too much; the message is lost then.
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

    /// False when the client must receive all data after it has read the waiting messages.
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

    /// Releases trees that are in a file now.
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

    /// The next message; nil when there is none, or it isn't written yet.
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

    /// No more messages will be sent.
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
