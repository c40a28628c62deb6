import HearthModel
import HearthNetwork
import HearthTree
import HearthWebSocket
import Synchronization

/// A change in the form that listeners receive: one object for all listeners with the same event, so that it is encoded
/// once for each form. A worker writes a large change to a file.
package final class RealtimePush: Sendable {
    enum Kind: Sendable {
        /// The present value of a location.
        case put(TreePath, Node)
        /// The values of some locations below one; none of them is above another.
        case merge(TreePath, [Member])
    }

    typealias Member = (path: TreePath, node: Node)

    private struct Encodings {
        var message: [UInt8]?
        var frames: [SharedWebSocketMessage]?
        /// By the depth of the listener's location.
        var events: [Int: [UInt8]] = [:]
        var sizeBytes: Int?
        var data: [TreeJSON.Form: Data] = [:]
        /// The clients that wait for the file.
        var waiting: [TreeJSON.Form: [@Sendable () -> Void]] = [:]
    }

    /// The JSON of a large change.
    enum Data: Sendable {
        case writing
        case written(RealtimeData)
        /// There is no capacity for it.
        case failed
    }

    let kind: Kind
    private let encodings = Mutex(Encodings())

    init(_ kind: Kind) {
        self.kind = kind
    }

    /// The server makes the changes at once, but clients apply them one after the other. In this order, no location
    /// with a value at the end is deleted for a moment, which would lose its priority.
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
            let made = RealtimeFrameSplitter.frames(of: message).map { SharedWebSocketMessage(string: $0) }
            encodings.frames = made
            return made
        }
    }

    package func message(tag: Int64?) -> [UInt8] {
        guard let tag else { return message }
        return message.dropLast(RealtimeServerMessage.pushTail(tag: nil).count)
            + RealtimeServerMessage.pushTail(tag: tag)
    }

    var messageHead: [UInt8] {
        switch kind {
        case .put(let path, _): RealtimeServerMessage.pushHead("d", path)
        case .merge(let path, _): RealtimeServerMessage.pushHead("m", path)
        }
    }

    private func makeMessage() -> [UInt8] {
        var string = messageHead
        switch kind {
        case .put(_, let node): TreeJSON.append(node, to: &string, form: .export)
        case .merge(_, let members): Self.append(members, to: &string, form: .export)
        }
        return string + RealtimeServerMessage.pushTail(tag: nil)
    }

    /// For event streams: `event: put` and its data with a path relative to the listener's location; empty when the
    /// plain form does not show the change.
    /// - Parameter depth: of the listener's location.
    func event(below depth: Int) -> [UInt8] {
        encodings.withLock { encodings in
            if let known = encodings.events[depth] { return known }
            let made = makeEvent(below: depth)
            encodings.events[depth] = made
            return made
        }
    }

    private func makeEvent(below depth: Int) -> [UInt8] {
        if !isVisible { return [] }
        var string = eventHead(below: depth)
        switch kind {
        case .put(_, let node): TreeJSON.append(node, to: &string, form: .plain)
        case .merge(_, let members): Self.append(Self.visible(members), to: &string, form: .plain)
        }
        return string + Self.eventTail
    }

    /// Whether the plain form shows any part of the change.
    var isVisible: Bool {
        switch kind {
        case .put(let path, _): path.last != .priority
        case .merge(_, let members): members.contains { $0.path.last != .priority }
        }
    }

    private static func visible(_ members: [Member]) -> [Member] { members.filter { $0.path.last != .priority } }

    func eventHead(below depth: Int) -> [UInt8] {
        switch kind {
        case .put(let path, _): Self.eventHead("put", path, below: depth)
        case .merge(let path, _): Self.eventHead("patch", path, below: depth)
        }
    }

    static func eventHead(_ name: String, _ path: TreePath, below depth: Int) -> [UInt8] {
        var string = Array("event: \(name)\ndata: {\"path\":".utf8)
        TreeJSON.appendString("/" + TreePath(keys: Array(path.keys.dropFirst(depth))).string, to: &string)
        string.append(contentsOf: #","data":"#.utf8)
        return string
    }

    static let eventTail = Array("}\n\n".utf8)

    private static func append(_ members: [Member], to string: inout [UInt8], form: TreeJSON.Form) {
        string.append(UInt8(ascii: "{"))
        for (position, member) in members.enumerated() {
            appendName(member, position, to: &string)
            TreeJSON.append(member.node, to: &string, form: form)
        }
        string.append(UInt8(ascii: "}"))
    }

    private static func appendName(_ member: Member, _ position: Int, to string: inout [UInt8]) {
        if position > 0 { string.append(UInt8(ascii: ",")) }
        TreeJSON.appendString(member.path.string, to: &string)
        string.append(UInt8(ascii: ":"))
    }

    // MARK: Large changes

    /// Its approximate size in memory. Counting stops above the limit of a listen.
    var sizeBytes: Int {
        if let known = encodings.withLock({ $0.sizeBytes }) { return known }
        var size = 0
        switch kind {
        case .put(_, let node): Self.add(node, to: &size)
        case .merge(_, let members):
            for member in members { Self.add(member.node, to: &size) }
        }
        encodings.withLock { $0.sizeBytes = size }
        return size
    }

    private static let nodeBytes = 64

    private static func add(_ node: Node, to size: inout Int) {
        size += nodeBytes
        if case .string(let string) = node.value { size += string.utf8.count }
        for (key, child) in node.children {
            if size > Limits.realtimePendingBytesMax { return }
            size += key.string.utf8.count
            add(child, to: &size)
        }
    }

    /// Whether it is too large to be encoded on a loop, or to be stored for each client.
    var isLarge: Bool { sizeBytes > Limits.realtimePushInlineBytesMax }

    /// Its JSON, which a worker writes on first use.
    /// - Parameter whenDone: is called from any thread when the JSON is written, if it isn't written yet.
    func data(_ form: TreeJSON.Form, _ service: RealtimeService, _ whenDone: (@Sendable () -> Void)?) -> Data {
        var isFirst = false
        let data = encodings.withLock { encodings in
            let data = encodings.data[form]
            isFirst = data == nil
            if isFirst { encodings.data[form] = .writing }
            if let whenDone {
                switch data {
                case nil, .writing: encodings.waiting[form, default: []].append(whenDone)
                default: break
                }
            }
            return data ?? .writing
        }
        if isFirst {
            service.pool.run(.short, for: .server, refused: { [self] _ in finish(form, .failed) }) { [self] in
                finish(form, write(form, service))
            }
        }
        return data
    }

    private func finish(_ form: TreeJSON.Form, _ data: Data) {
        let waiting = encodings.withLock { encodings in
            encodings.data[form] = data
            return encodings.waiting.removeValue(forKey: form) ?? []
        }
        for whenDone in waiting { whenDone() }
    }

    private func write(_ form: TreeJSON.Form, _ service: RealtimeService) -> Data {
        let writer = RealtimeDataWriter(folder: service.spoolFolder, service.pushFiles.reservation(for: .server))
        var failure: Status?
        func take(_ piece: inout [UInt8]) {
            do throws(Status) {
                if failure == nil { try writer.write(&piece) }
            } catch { failure = error }
            piece.removeAll(keepingCapacity: true)
        }
        switch kind {
        case .put(_, let node): TreeJSON.write(node, form: form) { take(&$0) }
        case .merge(_, let members):
            var string = [UInt8(ascii: "{")]
            for (position, member) in (form == .plain ? Self.visible(members) : members).enumerated() {
                Self.appendName(member, position, to: &string)
                take(&string)
                TreeJSON.write(member.node, form: form) { take(&$0) }
            }
            string.append(UInt8(ascii: "}"))
            take(&string)
        }
        ProcessMemory.giveBackSoon()
        return failure == nil ? .written(writer.finish()) : .failed
    }
}
