import HearthModel
import HearthTree
import HearthWebSocket
import Synchronization

/// A change as listeners are told of it: one object for all who hear the same, so that it is encoded once for each form.
final class RealtimePush: Sendable {
    enum Kind: Sendable {
        /// What is at a place now.
        case put(TreePath, Node)
        /// What is at some places below one; none of them is above another.
        case merge(TreePath, [(path: TreePath, node: Node)])
    }

    private struct Encodings {
        var message: [UInt8]?
        var frames: [SharedWebSocketMessage]?
        /// By the depth of the place that is listened to.
        var events: [Int: [UInt8]] = [:]
    }

    let kind: Kind
    private let encodings = Mutex(Encodings())

    init(_ kind: Kind) {
        self.kind = kind
    }

    /// Changes are made at once, but clients make them one after the other: in this order no place that has something in the
    /// end is gone for a moment, and loses its priority by it.
    static func ordered(_ changes: [TreeChange]) -> [TreeChange] {
        if changes.count == 1 { return changes }
        let values = changes.filter { !$0.isPriority }
        return values.filter { !$0.node.isEmpty } + values.filter { $0.node.isEmpty } + changes.filter(\.isPriority)
    }

    /// For sockets: `{"t":"d","d":{"a":"d","b":{"p":…,"d":…}}}`, with an action `m` for a merge.
    var message: [UInt8] {
        encodings.withLock { encodings in
            if let known = encodings.message { return known }
            let made = makeMessage()
            encodings.message = made
            return made
        }
    }

    /// The same as frames of a WebSocket.
    var frames: [SharedWebSocketMessage] {
        let message = message
        return encodings.withLock { encodings in
            if let known = encodings.frames { return known }
            let made = RealtimeFrameSplitter.frames(of: message).map { SharedWebSocketMessage(text: $0) }
            encodings.frames = made
            return made
        }
    }

    func message(tag: Int64?) -> [UInt8] {
        guard let tag else { return message }
        return message.dropLast(RealtimeMessages.pushTail(tag: nil).count) + RealtimeMessages.pushTail(tag: tag)
    }

    private func makeMessage() -> [UInt8] {
        var text: [UInt8]
        switch kind {
        case .put(let path, let node):
            text = RealtimeMessages.pushHead("d", path)
            TreeJSON.append(node, to: &text, form: .export)
        case .merge(let path, let members):
            text = RealtimeMessages.pushHead("m", path)
            Self.append(members, to: &text, form: .export)
        }
        return text + RealtimeMessages.pushTail(tag: nil)
    }

    /// For event streams: `event: put` and its data with a path relative to the place that is listened to; empty when the
    /// plain form shows nothing of the change.
    /// - Parameter depth: of the place that is listened to.
    func event(below depth: Int) -> [UInt8] {
        encodings.withLock { encodings in
            if let known = encodings.events[depth] { return known }
            let made = makeEvent(below: depth)
            encodings.events[depth] = made
            return made
        }
    }

    private func makeEvent(below depth: Int) -> [UInt8] {
        switch kind {
        case .put(let path, let node):
            if path.last == .priority { return [] }
            var text = Self.eventHead("put", path, below: depth)
            TreeJSON.append(node, to: &text, form: .plain)
            return text + Self.eventTail
        case .merge(let path, let members):
            let visible = members.filter { $0.path.last != .priority }
            if visible.isEmpty { return [] }
            var text = Self.eventHead("patch", path, below: depth)
            Self.append(visible, to: &text, form: .plain)
            return text + Self.eventTail
        }
    }

    static func eventHead(_ name: String, _ path: TreePath, below depth: Int) -> [UInt8] {
        var text = Array("event: \(name)\ndata: {\"path\":".utf8)
        TreeJSON.appendString("/" + TreePath(keys: Array(path.keys.dropFirst(depth))).text, to: &text)
        text.append(contentsOf: #","data":"#.utf8)
        return text
    }

    static let eventTail = Array("}\n\n".utf8)

    private static func append(_ members: [(path: TreePath, node: Node)], to text: inout [UInt8], form: TreeJSON.Form) {
        text.append(UInt8(ascii: "{"))
        for (position, member) in members.enumerated() {
            if position > 0 { text.append(UInt8(ascii: ",")) }
            TreeJSON.appendString(member.path.text, to: &text)
            text.append(UInt8(ascii: ":"))
            TreeJSON.append(member.node, to: &text, form: form)
        }
        text.append(UInt8(ascii: "}"))
    }
}

/// What a listen is told, of one commit.
struct RealtimeEvent: Sendable {
    enum Change: Sendable {
        case push(RealtimePush)
        /// What has changed could not be found out: the whole has to be read.
        case lost
        /// The same; and later changes aren't told until it is known again what they mean.
        case unknown
    }

    var version: Int64
    var change: Change

    /// What it takes while it waits.
    var sizeBytes: Int { if case .push(let push) = change { push.message.count } else { 0 } }
}
