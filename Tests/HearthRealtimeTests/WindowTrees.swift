import HearthTestSupport
import HearthTree

/// Random children of one location, and queries for some of them: many children, few values, so that windows overlap.
struct WindowTrees {
    var random: SeededGenerator
    /// Whether children are so large that the writer doesn't read the whole location.
    let isLarge: Bool

    static let names: [TreeKey] = (0..<70).map { $0 % 3 == 0 ? TreeKey($0) : TreeKey("k\($0)") }
    static let indexes: [TreeQuery.Index] = [.key, .priority, .value, .child("a"), .child("a/b"), .child("c")]
    /// Of strings with the same beginning, indexes only contain that.
    static let beginning = String(repeating: "é", count: 150)

    init(_ seed: UInt64, isLarge: Bool = false) {
        random = SeededGenerator(seed: seed)
        self.isLarge = isLarge
    }

    mutating func name() -> TreeKey { Self.names[random.below(Self.names.count)] }

    mutating func scalar() -> Scalar {
        switch random.below(8) {
        case 0: .bool(random.below(2) == 0)
        case 1: .double(Double(random.below(12)) + 0.5)
        case 2: .string("s\(random.below(6))")
        case 3: .string(Self.beginning + (random.below(3) == 0 ? "" : "\(random.below(6))"))
        default: .integer(Int64(random.below(12)))
        }
    }

    mutating func priority() -> Scalar? {
        switch random.below(4) {
        case 0: .integer(Int64(random.below(6)))
        case 1: .string("p\(random.below(3))")
        default: nil
        }
    }

    mutating func child() -> Node {
        if random.below(5) == 0 { return Node(scalar(), priority: priority()) }
        var children: [(TreeKey, Node)] = [("x", Node(.integer(Int64(random.below(100)))))]
        if random.below(3) > 0 {
            children.append(
                ("a", random.below(3) == 0 ? inner(["b": Node(scalar())]) : Node(scalar(), priority: priority())))
        }
        if random.below(2) == 0 { children.append(("c", Node(scalar()))) }
        if isLarge { children.append(("pad", Node(.string(String(repeating: "x", count: 2000))))) }
        return Node(children: children, priority: priority())
    }

    mutating func children(_ count: Int) -> Node { Node(children: (0..<count).map { _ in (name(), child()) }) }

    mutating func query() -> TreeQuery {
        var query = TreeQuery()
        query.index = Self.indexes[random.below(Self.indexes.count)]
        repeat {
            query.start = random.below(3) == 0 ? bound(query.index, isStart: true) : nil
            query.end = random.below(3) == 0 ? bound(query.index, isStart: false) : nil
            if random.below(6) == 0 {
                // As `equalTo`.
                query.start = bound(query.index, isStart: true)
                query.end = query.start
                if query.index != .key {
                    query.start?.key = .min
                    query.end?.key = .max
                }
                query.start?.isInclusive = true
                query.end?.isInclusive = true
            }
            query.limit = random.below(3) > 0 ? [1, 2, 5, 15, 250][random.below(5)] : nil
            query.isLimitedToLast = query.limit != nil && random.below(2) == 0
        } while query.isUnfiltered
        return query
    }

    private mutating func bound(_ index: TreeQuery.Index, isStart: Bool) -> TreeQuery.Bound {
        let isInclusive = random.below(2) == 0
        if index == .key { return TreeQuery.Bound(value: nil, key: .key(name()), isInclusive: isInclusive) }
        var value: Scalar? = random.below(6) == 0 ? nil : scalar()
        if index == .priority { value = priority() }
        let key: TreeQuery.BoundKey =
            random.below(3) == 0 ? .key(name()) : (isStart == isInclusive ? .min : .max)
        return TreeQuery.Bound(value: value, key: key, isInclusive: isInclusive)
    }

    /// A write at a location: of children, inside of them, of many, of all.
    mutating func changes(at path: TreePath) -> [TreeChange] {
        let kind = random.below(40)
        if kind == 0 { return [TreeChange(path: path, node: .empty)] }
        if kind <= 2 { return [TreeChange(path: path, node: children(random.below(90)))] }
        if kind == 3 { return [TreeChange(path: path.child(.priority), node: Node(scalar().number == nil ? "p" : 3))] }
        var changes: [TreeChange] = []
        var used: Set<TreeKey> = []
        let count = [1, 1, 1, 2, 4, 30][random.below(6)]
        for _ in 0..<count {
            let name = name()
            if !used.insert(name).inserted { continue }
            let child = path.child(name)
            switch random.below(7) {
            case 0, 1: changes.append(TreeChange(path: child, node: .empty))
            case 2:
                changes.append(TreeChange(path: child.child("a"), node: random.below(3) == 0 ? .empty : Node(scalar())))
            case 3:
                changes.append(TreeChange(path: child + "a/b", node: Node(scalar())))
                changes.append(TreeChange(path: child.child("c"), node: Node(scalar())))
            case 4: changes.append(TreeChange(path: child.child("x"), node: Node(.integer(Int64(random.below(100))))))
            case 5:
                changes.append(TreeChange(path: child.child(.priority), node: priority().map { Node($0) } ?? .empty))
            default: changes.append(TreeChange(path: child, node: self.child()))
            }
        }
        return changes
    }
}
