import HearthModel
import HearthTree

/// A message of the server.
enum WireMessage {
    case handshake(WireHandshake)
    /// The server rejects this client.
    case shutdown(reason: String)
    /// The client must use another host from now on.
    case redirect(host: String)
    /// A message for the developer's log.
    case note(String)
    case reply(WireReply)
    case data(Node, path: TreePath, tag: Int?)
    case merge([(path: TreePath, node: Node)], path: TreePath, tag: Int?)
    case ranges([ListenRange], path: TreePath, tag: Int?)
    /// - Parameter query: nil for a listen without one.
    case listenRevoked(path: TreePath, query: TreeQuery?)
    case credentialRevoked(WireFailure)
    /// Needs no reaction: pongs, and messages of later protocol versions.
    case ignored
}

/// The first message of a connection.
struct WireHandshake: Equatable {
    var serverMilliseconds: Int64
    /// The host that the client must use from now on; nil for no change.
    var host: String?
    var session: String
}

extension WireMessage {
    /// - Throws: when the message is not one of the protocol.
    init(_ string: [UInt8]) throws(TreeDataError) {
        let envelope = try Members(string, in: nil)
        let body = try Members(string, in: envelope.range("d"))
        switch try envelope.value("t")?.string {
        case "c": self = try Self.control(body)
        case "d":
            if let number = try body.value("r")?.integer {
                self = .reply(try Self.reply(Int(clamping: number), body))
            } else {
                self = try Self.push(body)
            }
        default: throw Self.malformed
        }
    }

    /// Of the times that a server may have, so that sums with their difference to the machine's clock don't overflow: the years 1970 to
    /// 9999.
    private static let millisecondsRange: ClosedRange<Int64> = 0...253_402_300_799_999

    /// A location in a message. One that no server has would overflow the stack of what walks down to it.
    private static func path(_ string: String?) throws(TreeDataError) -> TreePath {
        let path = TreePath(string ?? "")
        guard path.count <= Limits.treeDepthMax + 1 else { throw malformed }
        return path
    }

    private static let malformed = TreeDataError("a message is not of the protocol")

    private static func control(_ message: Members) throws(TreeDataError) -> WireMessage {
        switch try message.value("t")?.string {
        case "h":
            let data = try Members(message.string, in: message.range("d"))
            guard let milliseconds = try data.value("ts")?.integer, millisecondsRange.contains(milliseconds),
                let session = try data.value("s")?.string
            else {
                throw malformed
            }
            return .handshake(
                WireHandshake(
                    serverMilliseconds: milliseconds, host: try data.value("h")?.string, session: session))
        case "s": return .shutdown(reason: try message.value("d")?.string ?? "")
        case "r":
            guard let host = try message.value("d")?.string, !host.isEmpty else { throw malformed }
            return .redirect(host: host)
        case "e": return .note(try message.value("d")?.string ?? "")
        case _?: return .ignored
        case nil: throw malformed
        }
    }

    private static func reply(_ number: Int, _ message: Members) throws(TreeDataError) -> WireReply {
        let body = try Members(message.string, in: message.range("b"))
        guard let status = try body.value("s")?.string else { throw malformed }
        return WireReply(number: number, status: status, string: message.string, data: body.optionalRange("d"))
    }

    private static func push(_ message: Members) throws(TreeDataError) -> WireMessage {
        guard let action = try message.value("a")?.string else { throw malformed }
        let body = try Members(message.string, in: message.range("b"))
        let path = try path(try body.value("p")?.string)
        let tag = try body.value("t")?.integer.map { Int(clamping: $0) }
        switch action {
        case "d":
            let node = try body.optionalRange("d").map { (range) throws(TreeDataError) in
                try TreeJSON.node(body.string, in: range)
            }
            return .data(node ?? .empty, path: path, tag: tag)
        case "m":
            var members: [(path: TreePath, node: Node)] = []
            for (name, range) in try TreeJSON.members(body.string, in: body.range("d")) {
                members.append((try self.path(name), try TreeJSON.node(body.string, in: range)))
            }
            return .merge(members, path: path, tag: tag)
        case "rm": return .ranges(try ranges(body), path: path, tag: tag)
        case "c": return .listenRevoked(path: path, query: try query(body))
        case "ac":
            return .credentialRevoked(
                WireFailure(
                    try body.value("s")?.string ?? "invalid_token", try body.value("d")?.string ?? ""))
        case "sd": return .note(try body.value("msg")?.string ?? "")
        default: return .ignored
        }
    }

    private static func ranges(_ body: Members) throws(TreeDataError) -> [ListenRange] {
        var ranges: [ListenRange] = []
        for element in try TreeJSON.elements(body.string, in: body.range("d")) {
            let range = try Members(body.string, in: element)
            let node = try range.optionalRange("m").map { (slice) throws(TreeDataError) in
                try TreeJSON.node(body.string, in: slice)
            }
            ranges.append(
                ListenRange(
                    start: try range.value("s")?.string.map { (string) throws(TreeDataError) in try path(string) },
                    end: try range.value("e")?.string.map { (string) throws(TreeDataError) in try path(string) },
                    node: node ?? .empty))
        }
        return ranges
    }

    /// The tag is in an array; other servers may omit the array.
    private static func query(_ body: Members) throws(TreeDataError) -> TreeQuery? {
        guard let value = try body.value("q"), !value.isNull else { return nil }
        guard let array = value.array else { return try TreeQuery(wire: value) }
        guard let first = array.first else { return nil }
        return try TreeQuery(wire: first)
    }
}

/// The members of an object, as slices of the message that are parsed on demand.
private struct Members {
    let string: [UInt8]
    private let members: [(name: String, value: Range<Int>)]

    init(_ string: [UInt8], in range: Range<Int>?) throws(TreeDataError) {
        self.string = string
        members = try TreeJSON.members(string, in: range)
    }

    func optionalRange(_ name: String) -> Range<Int>? { members.last { $0.name == name }?.value }

    func range(_ name: String) throws(TreeDataError) -> Range<Int> {
        guard let range = optionalRange(name) else { throw TreeDataError("a message lacks its member \(name)") }
        return range
    }

    func value(_ name: String) throws(TreeDataError) -> JSONValue? {
        guard let range = optionalRange(name) else { return nil }
        return try TreeJSON.value(string, in: range)
    }
}
