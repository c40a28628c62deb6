import HearthModel
import HearthTree

/// A change of a location's value, as events of the Realtime Database describe it.
package struct TreeEvent: Sendable {
    package let namespace: String
    package let path: TreePath
    package let time: Timestamp
    package let kind: ChangeKind
    package let author: EventAuthor
    private let content: Content

    private enum Content: Sendable {
        case nodes(before: Node, after: Node)
        case stored([UInt8])
    }

    /// Nil when the value is the same; priorities are no part of it.
    package init?(
        namespace: String, path: TreePath, time: Timestamp, before: Node, after: Node, author: EventAuthor
    ) {
        if Self.isSame(before, after) { return nil }
        self.namespace = namespace
        self.path = path
        self.time = time
        self.author = author
        kind = before.isEmpty ? .created : after.isEmpty ? .deleted : .updated
        content = .nodes(before: before, after: after)
    }

    /// A change whose states are gone.
    /// - Parameter data: what `appendData` appended when it was made.
    package init(
        namespace: String, path: TreePath, time: Timestamp, kind: ChangeKind, data: [UInt8], author: EventAuthor
    ) {
        self.namespace = namespace
        self.path = path
        self.time = time
        self.kind = kind
        self.author = author
        content = .stored(data)
    }

    /// Whether two values are the same, whatever priorities they have.
    package static func isSame(_ left: Node, _ right: Node) -> Bool {
        if isObject(left), isObject(right) {
            return left.childCount == right.childCount
                && zip(left.children, right.children).allSatisfy { $0.key == $1.key && isSame($0.node, $1.node) }
        }
        return !isObject(left) && !isObject(right) && left.value == right.value
    }

    private static func isObject(_ node: Node) -> Bool { !node.isEmpty && !node.isLeaf }

    /// Appends `"data":…,"delta":…`: the value before, and what SDKs merge into it to know the value after.
    ///
    /// Where both values are objects, arrays are written as objects: SDKs merge arrays in different ways.
    package func appendData(to json: inout [UInt8]) {
        switch content {
        case .nodes(let before, let after): Self.appendData(before, after, to: &json)
        case .stored(let data): json += data
        }
    }

    /// The same of two values, which may be the same.
    package static func appendData(_ before: Node, _ after: Node, to json: inout [UInt8]) {
        let isMerged = isObject(before) && isObject(after)
        json.append(contentsOf: "\"data\":".utf8)
        append(before, isMerged: isMerged, to: &json)
        json.append(contentsOf: ",\"delta\":".utf8)
        if isMerged {
            appendDelta(before, after, to: &json)
        } else {
            append(after, isMerged: false, to: &json)
        }
    }

    private static func append(_ node: Node, isMerged: Bool, to json: inout [UInt8]) {
        guard isMerged, isObject(node) else { return TreeJSON.append(node, to: &json, form: .plain) }
        appendObject(node.children.lazy.map { ($0.key, $0.node) }, to: &json) { child, json in
            append(child, isMerged: true, to: &json)
        }
    }

    private static func appendObject<Value>(
        _ members: some Sequence<(TreeKey, Value)>, to json: inout [UInt8], _ body: (Value, inout [UInt8]) -> Void
    ) {
        json.append(UInt8(ascii: "{"))
        var isFirst = true
        for (key, value) in members {
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            TreeJSON.appendString(key.string, to: &json)
            json.append(UInt8(ascii: ":"))
            body(value, &json)
        }
        json.append(UInt8(ascii: "}"))
    }

    /// What differs in two objects; null is what went.
    private static func appendDelta(_ before: Node, _ after: Node, to json: inout [UInt8]) {
        appendObject(differences(before, after), to: &json) { pair, json in
            if isObject(pair.before), isObject(pair.after) {
                appendDelta(pair.before, pair.after, to: &json)
            } else {
                append(pair.after, isMerged: true, to: &json)
            }
        }
    }

    /// In the order of keys.
    private static func differences(
        _ before: Node, _ after: Node
    ) -> [(TreeKey, (before: Node, after: Node))] {
        var found: [(TreeKey, (before: Node, after: Node))] = []
        var (left, right) = (before.children.makeIterator(), after.children.makeIterator())
        var (old, new) = (left.next(), right.next())
        while old != nil || new != nil {
            let order = old.map { old in new.map { TreeKey.compare(old.key, $0.key) } ?? -1 } ?? 1
            let (oldNode, newNode) = (order <= 0 ? old?.node : nil, order >= 0 ? new?.node : nil)
            if let key = (order <= 0 ? old : new)?.key, !isSame(oldNode ?? .empty, newNode ?? .empty) {
                found.append((key, (oldNode ?? .empty, newNode ?? .empty)))
            }
            if order <= 0 { old = left.next() }
            if order >= 0 { new = right.next() }
        }
        return found
    }
}
