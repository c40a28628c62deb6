import HearthModel
import HearthTestSupport
import HearthTree
import Testing

/// The tree of a JSON string.
func tree(_ string: String, limits: TreeLimits = .standard) throws(TreeDataError) -> Node {
    try TreeJSON.node(Array(string.utf8), limits: limits)
}

func json(_ string: String) throws(TreeDataError) -> JSONValue { try TreeJSON.value(Array(string.utf8)) }

func string(of node: Node, _ form: TreeJSON.Form = .export, pretty: Bool = false) -> String {
    var string: [UInt8] = []
    TreeJSON.append(node, to: &string, form: form, pretty: pretty)
    return String(decoding: string, as: UTF8.self)
}

func string(of value: JSONValue) -> String {
    var string: [UInt8] = []
    TreeJSON.append(value, to: &string)
    return String(decoding: string, as: UTF8.self)
}

extension SeededGenerator {
    private static let keys: [TreeKey] = [
        "a", "b", "c", "d", "!", "-", "0", "1", "2", "3", "01", "-1", "10", "\u{e4}", "a\u{308}", "\u{1F600}",
        "\u{E000}", " ",
        "z",
    ]
    private static let scalars: [Scalar] = [
        true, false, 0, 1, 2, -1, 15, 15.0, 3.5, 1e21, 1e-7, .integer(.max), .integer(.min), .integer(1 << 53 + 1),
        .double(0x1p53), "", "a", "b", "\u{e4}", "a\u{308}", "x\"\\y\n\u{1}", "\u{1F600}", "\u{FFFD}",
    ]
    private static let priorities: [Scalar] = [0, 1, 2.5, "p", "q", "\u{1F600}"]

    mutating func key() -> TreeKey { Self.keys.randomElement(using: &self)! }
    mutating func scalar() -> Scalar { Self.scalars.randomElement(using: &self)! }
    mutating func priority() -> Scalar? { isOne(in: 4) ? Self.priorities.randomElement(using: &self)! : nil }

    mutating func path(_ countMax: Int) -> TreePath { TreePath(keys: (0..<below(countMax + 1)).map { _ in key() }) }

    /// Small keys and few values, so that changes overlap.
    mutating func node(depth: Int) -> Node {
        if isOne(in: 10) { return .empty }
        if depth == 0 || isOne(in: 4) { return Node(scalar(), priority: priority()) }
        let children = (0..<below(6)).map { _ in (key(), node(depth: depth - 1)) }
        return Node(children: children, priority: priority())
    }

    mutating func change(depth: Int) -> TreeChange {
        let path = path(depth)
        if isOne(in: 5) { return TreeChange(path: path.child(.priority), node: priority().map { Node($0) } ?? .empty) }
        return TreeChange(path: path, node: isOne(in: 3) ? .empty : node(depth: 2))
    }
}
