import HearthTestSupport
import HearthTree

/// Trees and queries.
extension SeededGenerator {
    static let keys: [TreeKey] = ["a", "b", "c", "1", "2", "10", "é"]

    mutating func key() -> TreeKey { Self.keys[below(Self.keys.count)] }

    mutating func path(upTo depth: Int) -> TreePath {
        TreePath(keys: (0..<below(depth + 1)).map { _ in key() })
    }

    mutating func scalar() -> Scalar {
        switch below(7) {
        case 0: .bool(below(2) == 0)
        case 1: .integer(Int64(below(5)))
        case 2: .double(Double(below(20)) + 0.25)
        case 3: .string("s\(below(4))")
        case 4: .integer(Int64(below(3)))
        default: .integer(Int64(below(100)))
        }
    }

    mutating func priority() -> Scalar? {
        switch below(6) {
        case 0: .integer(Int64(below(4)))
        case 1: .string("p\(below(3))")
        default: nil
        }
    }

    mutating func node(depth: Int) -> Node {
        if depth == 0 || below(3) == 0 { return Node(scalar(), priority: priority()) }
        let children = (0..<(1 + below(4))).map { _ in (key(), node(depth: depth - 1)) }
        return Node(children: children, priority: priority())
    }

    mutating func query() -> TreeQuery {
        var query = TreeQuery()
        switch below(5) {
        case 0: query.index = .key
        case 1: query.index = .value
        case 2: query.index = .priority
        case 3: query.index = .child(TreePath(keys: [key()]))
        default: query.index = .child(TreePath(keys: [key(), key()]))
        }
        func bound(_ random: inout SeededGenerator, isStart: Bool) -> TreeQuery.Bound {
            let isInclusive = random.below(2) == 0
            if query.index == .key {
                return TreeQuery.Bound(value: nil, key: .key(random.key()), isInclusive: isInclusive)
            }
            var value: Scalar? = random.below(6) == 0 ? nil : random.scalar()
            if query.index == .priority { value = random.priority() }
            let key: TreeQuery.BoundKey =
                random.below(3) == 0 ? .key(random.key()) : (isStart == isInclusive ? .min : .max)
            return TreeQuery.Bound(value: value, key: key, isInclusive: isInclusive)
        }
        repeat {
            query.start = below(3) == 0 ? bound(&self, isStart: true) : nil
            query.end = below(3) == 0 ? bound(&self, isStart: false) : nil
            query.limit = below(3) > 0 ? 1 + below(4) : nil
            query.isLimitedToLast = below(2) == 0 && query.limit != nil
        } while query.isUnfiltered
        return query
    }
}

func inner(_ children: KeyValuePairs<TreeKey, Node>, priority: Scalar? = nil) -> Node {
    Node(children: children.map { ($0.key, $0.value) }, priority: priority)
}

extension Node: ExpressibleByIntegerLiteral {
    package init(integerLiteral value: Int64) { self.init(.integer(value)) }
}

extension Node: ExpressibleByUnicodeScalarLiteral, ExpressibleByExtendedGraphemeClusterLiteral,
    ExpressibleByStringLiteral
{
    package init(stringLiteral value: String) { self.init(.string(value)) }
}
