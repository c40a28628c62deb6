import Glibc
import HearthTestSupport
import HearthTree

/// Trees, changes and queries that overlap often, with unusual keys and values.
struct RandomTrees {
    var random: SeededGenerator

    init(_ seed: UInt64) { random = SeededGenerator(seed: seed) }

    private static let common = ["a", "b", "c"]
    private static let odd = [
        "0", "1", "2", "9", "10", "00", "-0", "000", "01", "001", "-1", "-01", "2147483647", "2147483648",
        "-2147483648", "-2147483649", "0000000000000", "12345678901", "-", "--", "-a", "-Nabc_x", " ", "!", "a b", "ab",
        "A",
        "\u{e9}", "e\u{301}", "\u{1F600}", "\u{E000}", "\u{FFFD}", "\u{FFFF}", "\u{D7FF}", "\u{10FFFF}z", "~",
        String(repeating: "0", count: 300) + "7", String(repeating: "0", count: 500),
        "-" + String(repeating: "0", count: 400), String(repeating: "k", count: 768),
    ]

    mutating func key() -> TreeKey { TreeKey(random.chance(65) ? random.pick(Self.common) : random.pick(Self.odd)) }

    mutating func path(_ most: Int) -> TreePath {
        var keys: [TreeKey] = []
        for _ in 0..<random.below(most + 1) { keys.append(key()) }
        return TreePath(keys: keys)
    }

    private static let prefix = String(repeating: "p\u{E000}\u{1F600}", count: 36)

    private static let scalars: [Scalar] = [
        true, false, 0, 1, 2, -1, 1.5, -0.25, 15, 15.0, .integer(.max), .integer(.min), .integer(1 << 53),
        .integer(1 << 53 + 1), 1e300, -1e300, 1e-300, "", "a", "b", "ab", "a\u{0}", "a\u{0}b", "a\u{1}", "\u{FFFF}",
        "\u{E000}", "\u{1F600}", "e\u{301}", "\u{e9}", .integer(127), .integer(128), .integer(-128), .integer(-129),
        .string(String(repeating: "x", count: 512)), .string(String(repeating: "x", count: 513)),
        .string(String(repeating: "x", count: 700)), .string(String(repeating: "y", count: 700)),
        .string(prefix), .string(prefix + "a"), .string(prefix + "b"), .string(prefix + "\u{0}"),
        .string(String(prefix.unicodeScalars.dropLast(2).map(Character.init))),
        .string(String(repeating: "q", count: 256)),
        .string(String(repeating: "q", count: 257)), .string(String(repeating: "q", count: 256) + "\u{0}"),
    ]

    mutating func scalar() -> Scalar { random.pick(Self.scalars) }

    mutating func priority() -> Scalar? {
        if random.chance(70) { return nil }
        let scalar = scalar()
        return scalar.bool == nil ? scalar : 7
    }

    mutating func node(_ depth: Int) -> Node {
        if depth == 0 || random.chance(35) { return random.chance(8) ? .empty : Node(scalar(), priority: priority()) }
        var children: [(TreeKey, Node)] = []
        for _ in 0..<random.below(5) { children.append((key(), node(depth - 1))) }
        return Node(children: children, priority: priority())
    }

    mutating func change() -> TreeChange {
        let path = path(4)
        switch random.below(10) {
        case 0...3: return TreeChange(path: path, node: Node(scalar(), priority: priority()))
        case 4...5: return TreeChange(path: path, node: random.chance(70) ? node(2) : node(4))
        case 6...7: return TreeChange(path: path, node: .empty)
        case 8:
            return TreeChange(path: path.child(.priority), node: priority().map { Node($0) } ?? .empty)
        default:
            let delta: ServerValue = random.pick([.timestamp, .increment(3), .incrementDouble(0.5)])
            return TreeChange(path: path, node: Node(.deferred(delta)))
        }
    }

    /// Mostly one; several may be above or below each other.
    mutating func changes() -> [TreeChange] {
        (0..<(random.chance(70) ? 1 : 2 + random.below(4))).map { _ in change() }
    }

    mutating func index() -> TreeQuery.Index {
        random.pick([.key, .priority, .value, .child("a"), .child("a/b"), .child("b")])
    }

    private mutating func bound(_ index: TreeQuery.Index) -> TreeQuery.Bound {
        let value: Scalar? = index == .key || random.chance(20) ? nil : scalar()
        let key: TreeQuery.BoundKey
        switch random.below(6) {
        case 0 where index != .key: key = .min
        case 1 where index != .key: key = .max
        case 2: key = .key(TreeKey(random.pick(["a\u{0}", "a\u{1F}b", "\u{0}", "a ", "a\u{FFFF}\u{FFFF}", "3", "-2"])))
        default: key = .key(self.key())
        }
        return TreeQuery.Bound(value: value, key: key, isInclusive: random.chance(60))
    }

    mutating func query() -> TreeQuery {
        var query = TreeQuery()
        query.index = index()
        if random.chance(45) { query.start = bound(query.index) }
        if random.chance(45) { query.end = bound(query.index) }
        if random.chance(60) { query.limit = 1 + random.below(4) }
        query.isLimitedToLast = random.chance(50)
        return query
    }
}
