/// The value of a leaf, or a priority.
package enum Scalar: Sendable {
    case bool(Bool)
    case integer(Int64)
    /// Finite and not -0.0: make it by `number`.
    case double(Double)
    case string(String)
    /// A value that the server computes when it applies the write; only in writes, never in a stored tree.
    case deferred(ServerValue)

    /// - Returns: nil for NaN and infinities, which the database doesn't have.
    package static func number(_ value: Double) -> Scalar? {
        guard value.isFinite else { return nil }
        return .double(value == 0 ? 0 : value)
    }

    /// The number as its JSON is read again: a whole one below 2⁵³ is an integer.
    /// - Returns: nil for NaN and infinities.
    package static func canonical(_ value: Double) -> Scalar? {
        if value.magnitude < 0x1p53, let whole = Int64(exactly: value) { return .integer(whole) }
        return number(value)
    }

    package var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var isDeferred: Bool { if case .deferred = self { true } else { false } }
}

extension Scalar: Hashable {
    /// Of one kind and one value; strings byte by byte. 15 and 15.0 are not equal: they add differently.
    package static func == (lhs: Scalar, rhs: Scalar) -> Bool {
        switch (lhs, rhs) {
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.double(let left), .double(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.deferred(let left), .deferred(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .bool(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .double(let value): hasher.combine(value)
        case .string(var value): value.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        case .deferred(let value): hasher.combine(value)
        }
    }
}

extension Scalar {
    /// The order of values: false, true, numbers, strings by UTF-16 code units. Numbers are compared as doubles,
    /// integers too: comparing some exactly and some rounded would not be a consistent order. `TreeQuery` defines the
    /// positions of nothing and of inner nodes. Priorities have the same order.
    package static func compare(_ lhs: Scalar, _ rhs: Scalar) -> Int {
        let ranks = (lhs.rank, rhs.rank)
        if ranks.0 != ranks.1 { return ranks.0 - ranks.1 }
        switch (lhs, rhs) {
        case (.bool(let left), .bool(let right)): return left == right ? 0 : (left ? 1 : -1)
        case (.string(let left), .string(let right)): return UTF16Order.compare(left, right)
        default:
            guard let left = lhs.number, let right = rhs.number, left != right else { return 0 }
            return left < right ? -1 : 1
        }
    }

    private var rank: Int {
        switch self {
        case .bool: 0
        case .integer, .double: 1
        case .string: 2
        case .deferred: 3
        }
    }
}

extension Scalar: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral
{
    @inlinable package init(stringLiteral value: String) { self = .string(value) }
    @inlinable package init(integerLiteral value: Int64) { self = .integer(value) }
    @inlinable package init(booleanLiteral value: Bool) { self = .bool(value) }
    @inlinable package init(floatLiteral value: Double) { self = .double(value == 0 ? 0 : value) }
}
