import HearthModel
import HearthWire

/// A query whose subscribers need every change of the result.
package struct LiveQuery: Sendable {
    package let query: NormalizedQuery
    private let matcher: QueryMatcher

    package init(_ query: NormalizedQuery) {
        self.query = query
        matcher = QueryMatcher(query)
    }

    /// The approximate memory of the query while it is watched, with its filing keys; without the memory of listeners.
    /// - Parameter requestBytes: its size on the wire, which its names and values determine.
    package func heldBytes(requestBytes: Int) -> Int {
        var bytes = Self.ownBytes + 3 * requestBytes
        for conjunction in query.disjunction {
            for predicate in conjunction {
                bytes += Self.predicateBytes
                // An index has a copy, which is cut.
                if case .field(_, _, let value) = predicate {
                    bytes += min(Self.size(of: value), Limits.indexedValueSizeBytesMax)
                }
            }
        }
        return bytes
    }

    // As measured with 3,000 targets of one string, and of IN with 30 short ones.
    private static let ownBytes = 1536
    private static let predicateBytes = 384

    private static func size(of value: Value) -> Int {
        switch value {
        case .string(let string), .reference(let string): string.utf8.count
        case .bytes(let bytes): bytes.count
        case .array(let values): values.reduce(0) { $0 + 16 + size(of: $1) }
        case .vector(let numbers): 8 * numbers.count
        case .map(let map): map.fields.reduce(0) { $0 + 16 + $1.name.utf8.count + size(of: $1.value) }
        default: 16
        }
    }

    /// Whether a document's membership depends on others: a change of one can add or remove another.
    package var isWindow: Bool { query.query.limit != nil || query.query.offset > 0 }

    package var scope: WatchScope { query.query.watchScope }

    /// Whether a document can belong to the result by its name alone.
    package func concerns(_ key: [UInt8]) -> Bool { ChangeHub.scopes(of: key).contains(scope) }

    /// Whether a document in one state lies after a position of the query's order (`NormalizedQuery.position`), or
    /// isn't in the result at all.
    package func isBehind(_ position: [UInt8], _ document: FieldTable?, key: [UInt8]) throws(Status) -> Bool {
        guard let document, try matches(document, key: key) else { return true }
        guard let orderKey = try query.orderKey(document, key: key) else { return true }
        return UTF8Order.compare(orderKey, position) > 0
    }

    /// The position of a matching document in the query's order (`NormalizedQuery.position`).
    package func position(of document: FieldTable, key: [UInt8]) throws(Status) -> [UInt8]? {
        try query.orderKey(document, key: key)
    }

    /// Whether a document in one state belongs to the result, ignoring limit and offset.
    package func matches(_ document: StoredDocument?, key: [UInt8]) throws(Status) -> Bool {
        guard let document else { return false }
        return try matches(FieldsReader(document.fields), key: key)
    }

    /// The same for a document that many queries read.
    package func matches(_ document: FieldTable?, key: [UInt8]) throws(Status) -> Bool {
        guard let document else { return false }
        return try matches(document, key: key)
    }

    private func matches(_ fields: some FieldSource, key: [UInt8]) throws(Status) -> Bool {
        guard try matcher.matches(key: key, fields) else { return false }
        if !query.hasBounds { return true }
        guard let orderKey = try query.orderKey(fields, key: key) else { return false }
        return query.isWithinBounds(orderKey)
    }
}
