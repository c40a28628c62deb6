import HearthEngine
import HearthModel
import HearthWire
import Synchronization

/// The documents that a receiver watches, as coarse as an index needs it.
package enum WatchScope: Hashable, Sendable {
    /// One document, by its key.
    case document([UInt8])
    /// The documents of one collection, by the prefix of their keys.
    case collection([UInt8])
    /// The documents of all collections with an id, by its UTF-8 bytes.
    case collectionGroup([UInt8])
    case everything

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .document(let bytes):
            hasher.combine(0)
            hasher.combine(bytes: bytes)
        case .collection(let bytes):
            hasher.combine(1)
            hasher.combine(bytes: bytes)
        case .collectionGroup(let bytes):
            hasher.combine(2)
            hasher.combine(bytes: bytes)
        case .everything: hasher.combine(3)
        }
    }
}

/// Receives commits that concern the documents that it watches.
package protocol ChangeReceiver: AnyObject, Sendable {
    /// Is notified of commits in order, on the writer's thread, under the hub's lock: passes them on and returns.
    func receive(_ event: ChangeEvent)
}

package enum ChangeEvent: Sendable {
    /// - Parameter scopes: those of each change's document, which are the same for all.
    case committed(ChangeSet, scopes: [[WatchScope]])
    /// Everything was deleted, by a commit that leaves no history.
    case cleared(version: Int64)
    /// The database is closed, with the reason.
    case closed(Status)
}

/// Notifies the receivers that each commit may concern.
///
/// A commit looks up its documents' scopes, so unwatched documents cost nothing, and receivers that watch other
/// collections cost nothing either. A receiver represents many listeners: those of one event loop.
package final class ChangeHub: Sendable {
    private struct Entry {
        var receiver: any ChangeReceiver
        var uses: Int
    }

    private struct State {
        /// All commits up to this version have been delivered.
        var version: Int64
        var scopes: [WatchScope: [ObjectIdentifier: Entry]] = [:]
        var isClosed = false
    }

    private let state: Mutex<State>
    /// Which collections the delivered commits changed.
    let history: FeedIndex

    init(version: Int64, feed: SharedCacheBytes) {
        state = Mutex(State(version: version))
        history = FeedIndex(after: version, shared: feed)
    }

    /// Begins to watch.
    /// - Returns: false when the database is closed.
    package func add(_ scopes: [WatchScope], for receiver: any ChangeReceiver) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            for scope in scopes {
                state.scopes[scope, default: [:]][
                    ObjectIdentifier(receiver), default: Entry(receiver: receiver, uses: 0)
                ]
                .uses += 1
            }
            return true
        }
    }

    /// Ends the watch that one call of `add` began.
    package func remove(_ scopes: [WatchScope], for receiver: any ChangeReceiver) {
        state.withLock { state in
            let id = ObjectIdentifier(receiver)
            for scope in scopes {
                guard let uses = state.scopes[scope]?[id]?.uses else { continue }
                if uses > 1 {
                    state.scopes[scope]?[id]?.uses = uses - 1
                } else {
                    state.scopes[scope]?[id] = nil
                    if state.scopes[scope]?.isEmpty == true { state.scopes[scope] = nil }
                }
            }
        }
    }

    /// Runs `body` with the version up to which all commits have been delivered, before any later one is.
    package func withVersion(_ body: (Int64) -> Void) {
        state.withLock { body($0.version) }
    }

    // MARK: The writer's thread

    func committed(_ set: ChangeSet) {
        // Before listeners are notified: they may request the changes.
        history.append(set)
        state.withLock { state in
            state.version = set.version
            if state.scopes.isEmpty { return }
            var receivers: [ObjectIdentifier: any ChangeReceiver] = [:]
            func collect(_ scope: WatchScope) {
                guard let entries = state.scopes[scope] else { return }
                for (id, entry) in entries { receivers[id] = entry.receiver }
            }
            let scopes = set.changes.map { Self.scopes(of: $0.key) }
            for each in scopes { for scope in each { collect(scope) } }
            for receiver in receivers.values { receiver.receive(.committed(set, scopes: scopes)) }
        }
    }

    func cleared(version: Int64) {
        history.reset(to: version)
        notifyAll(.cleared(version: version)) { $0.version = version }
    }

    func closed(_ reason: Status) { notifyAll(.closed(reason)) { $0.isClosed = true } }

    private func notifyAll(_ event: ChangeEvent, _ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            var receivers: [ObjectIdentifier: any ChangeReceiver] = [:]
            for entries in state.scopes.values { for (id, entry) in entries { receivers[id] = entry.receiver } }
            for receiver in receivers.values { receiver.receive(event) }
        }
    }

    /// The scopes that a document belongs to.
    package static func scopes(of key: [UInt8]) -> [WatchScope] {
        var scopes: [WatchScope] = [.document(key), .everything]
        if let prefix = DocumentKey.collectionPrefix(of: key) { scopes.append(.collection(prefix)) }
        if let group = group(of: key) { scopes.append(group) }
        return scopes
    }

    /// All collections with the id of the collection that a document is in.
    static func group(of key: [UInt8]) -> WatchScope? {
        var position = 0
        var start = 0
        while position < key.count, key[position] != IndexValue.Tag.terminator {
            guard let end = DocumentKey.segmentEnd(key, position) else { return nil }
            start = position
            position = end
        }
        guard position < key.count, let id = DocumentKey.readSegment(key, &start) else { return nil }
        return .collectionGroup(Array(id.utf8))
    }
}

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

extension Query {
    /// The narrowest scope that contains all documents in the query's scope.
    var watchScope: WatchScope {
        switch scope {
        case .collection(let id): .collection(DocumentKey.collectionPrefix(parent.path.appending(id)))
        case .collectionGroup(let id): .collectionGroup(Array(id.utf8))
        case .anyCollection, .allDescendants: .everything
        }
    }
}
