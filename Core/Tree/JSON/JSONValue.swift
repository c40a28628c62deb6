/// Any JSON: for envelopes, queries, tokens and other small values. Data is a `Node`.
package enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits.
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    /// In the order of the source. Of equal names the last applies: see the subscript.
    case object([(name: String, value: JSONValue)])
}

extension JSONValue {
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    package var object: [(name: String, value: JSONValue)]? {
        if case .object(let value) = self { value } else { nil }
    }
    package var isNull: Bool { if case .null = self { true } else { false } }

    /// A number that is whole, whatever its spelling is.
    package var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .double(let value): Int64(exactly: value)
        default: nil
        }
    }

    package var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// The value of a leaf; nil for null, arrays and objects.
    package var scalar: Scalar? {
        switch self {
        case .bool(let value): .bool(value)
        case .integer(let value): .integer(value)
        case .double(let value): Scalar.number(value)
        case .string(let value): .string(value)
        default: nil
        }
    }

    package init(_ scalar: Scalar?) {
        switch scalar {
        case nil: self = .null
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .integer(value)
        case .double(let value): self = .double(value)
        case .string(let value): self = .string(value)
        case .deferred(let value): self = .object([(".sv", value.json)])
        }
    }

    /// A member of an object; nil where there is none.
    package subscript(name: String) -> JSONValue? {
        object?.last { TreeKey($0.name) == TreeKey(name) }?.value
    }
}

extension ServerValue {
    /// The value of `.sv`.
    var json: JSONValue {
        switch self {
        case .timestamp: .string("timestamp")
        case .increment(let delta): .object([("increment", .integer(delta))])
        case .incrementDouble(let delta): .object([("increment", .double(delta))])
        }
    }

    init?(json: JSONValue) {
        if case .string(let name) = json, TreeKey(name) == "timestamp" {
            self = .timestamp
            return
        }
        guard case .object(let members) = json, members.count == 1, TreeKey(members[0].name) == "increment" else {
            return nil
        }
        switch members[0].value.scalar {
        case .integer(let delta): self = .increment(delta)
        case .double(let delta): self = .incrementDouble(delta)
        default: return nil
        }
    }
}

extension JSONValue: Hashable {
    /// Of one kind and one value; strings byte by byte, objects with the same members in the same order.
    package static func == (lhs: JSONValue, rhs: JSONValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)):
            left.count == right.count
                && zip(left, right).allSatisfy { TreeKey($0.name) == TreeKey($1.name) && $0.value == $1.value }
        default:
            switch (lhs.scalar, rhs.scalar) {
            case (let left?, let right?): left == right
            default: false
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .array(let elements): hasher.combine(elements)
        case .object(let members):
            for member in members {
                hasher.combine(TreeKey(member.name))
                hasher.combine(member.value)
            }
        default: hasher.combine(scalar)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    @inlinable package init(stringLiteral value: String) { self = .string(value) }
    @inlinable package init(integerLiteral value: Int64) { self = .integer(value) }
    @inlinable package init(booleanLiteral value: Bool) { self = .bool(value) }
    @inlinable package init(floatLiteral value: Double) { self = .double(value) }
    @inlinable package init(nilLiteral: ()) { self = .null }
    @inlinable package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    @inlinable package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { (name: $0.0, value: $0.1) })
    }
}
