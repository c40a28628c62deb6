import HearthTree

/// Numbers that a seed determines (SplitMix64), and trees made from them.
struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) {
        state = seed
        state = next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func next(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    static let keys: [TreeKey] = ["a", "b", "c", "1", "2", "10", "é"]

    mutating func key() -> TreeKey { Self.keys[next(Self.keys.count)] }

    mutating func path(upTo depth: Int) -> TreePath {
        TreePath(keys: (0..<next(depth + 1)).map { _ in key() })
    }

    mutating func scalar() -> Scalar {
        switch next(7) {
        case 0: .bool(next(2) == 0)
        case 1: .integer(Int64(next(5)))
        case 2: .double(Double(next(20)) + 0.25)
        case 3: .string("s\(next(4))")
        case 4: .integer(Int64(next(3)))
        default: .integer(Int64(next(100)))
        }
    }

    mutating func priority() -> Scalar? {
        switch next(6) {
        case 0: .integer(Int64(next(4)))
        case 1: .string("p\(next(3))")
        default: nil
        }
    }

    mutating func node(depth: Int) -> Node {
        if depth == 0 || next(3) == 0 { return Node(scalar(), priority: priority()) }
        let children = (0..<(1 + next(4))).map { _ in (key(), node(depth: depth - 1)) }
        return Node(children: children, priority: priority())
    }

    mutating func query() -> TreeQuery {
        var query = TreeQuery()
        switch next(5) {
        case 0: query.index = .key
        case 1: query.index = .value
        case 2: query.index = .priority
        case 3: query.index = .child(TreePath(keys: [key()]))
        default: query.index = .child(TreePath(keys: [key(), key()]))
        }
        func bound(_ random: inout Seeded, isStart: Bool) -> TreeQuery.Bound {
            let isInclusive = random.next(2) == 0
            if query.index == .key {
                return TreeQuery.Bound(value: nil, key: .key(random.key()), isInclusive: isInclusive)
            }
            var value: Scalar? = random.next(6) == 0 ? nil : random.scalar()
            if query.index == .priority { value = random.priority() }
            let key: TreeQuery.BoundKey =
                random.next(3) == 0 ? .key(random.key()) : (isStart == isInclusive ? .min : .max)
            return TreeQuery.Bound(value: value, key: key, isInclusive: isInclusive)
        }
        repeat {
            query.start = next(3) == 0 ? bound(&self, isStart: true) : nil
            query.end = next(3) == 0 ? bound(&self, isStart: false) : nil
            query.limit = next(3) > 0 ? 1 + next(4) : nil
            query.isLimitedToLast = next(2) == 0 && query.limit != nil
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
