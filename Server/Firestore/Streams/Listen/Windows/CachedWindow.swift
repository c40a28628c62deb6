import HearthHost
import HearthModel
import HearthDocuments

/// Cached results of a query with a limit or an offset, in order: all results from the first one, and some behind the
/// window. The effect of a change on the window is computed from them, without reading an index.
///
/// The order is that of `NormalizedQuery.position`, in which no two documents have the same position. A change costs a
/// look-up and a part of a chunk, however long the window is.
struct CachedWindow {
    private struct Entry: Sendable {
        var position: [UInt8]
        var key: [UInt8]
    }

    /// The effect of a document's change.
    enum Effect: Equatable {
        /// Contains the key of every document that entered, left or changed in the window.
        case seen([[UInt8]])
        /// The cached results no longer reach the end of the window.
        case exhausted
    }

    /// The ranks of the window's results.
    let ranks: Range<Int>
    /// The query has no results behind the last entry.
    private(set) var isComplete: Bool
    /// Entries beyond this count are dropped from the end.
    private let countMax: Int
    private var entries = SortedChunks<Entry>([]) { UTF8Order.compare($0.position, $1.position) < 0 }
    private var known: [[UInt8]: (position: [UInt8], updateVersion: Int64)] = [:]
    /// Approximate memory.
    private(set) var sizeBytes = 0

    /// Memory of an entry, in addition to the bytes of its key and its position.
    private static let entryBytes = 192
    /// A window with a larger offset is not cached, because the results before it would be cached too.
    static let offsetMax = 1000

    /// The number of results to cache behind a window. A document that leaves the window then seldom costs a query.
    /// Proportional to the cost of that query.
    private static func surplus(_ limit: Int) -> Int { max(8, limit / 2) }

    /// An empty cache.
    /// - Returns: nil when the window must not be cached.
    init?(of query: Query) {
        guard query.offset <= Self.offsetMax else { return nil }
        isComplete = false
        guard let limit = query.limit else {
            ranks = query.offset..<Int.max
            countMax = .max
            return
        }
        let (end, overflow) = query.offset.addingReportingOverflow(limit)
        // More than fits in any memory.
        guard !overflow, end < Limits.listenCachedWindowBytesMax / Self.entryBytes else { return nil }
        ranks = query.offset..<end
        countMax = end + 2 * Self.surplus(limit)
    }

    var count: Int { entries.count }
    /// For tests that count work.
    var steps: Int { entries.steps }

    /// The number of results to append; nil for no limit.
    var wantedCount: Int? {
        ranks.upperBound == .max ? nil : ranks.upperBound + Self.surplus(ranks.count)
    }

    static func size(_ key: [UInt8], _ position: [UInt8]) -> Int { key.count + position.count + entryBytes }

    /// Adds the next result of a query.
    mutating func append(_ key: [UInt8], at position: [UInt8], _ updateVersion: Int64) {
        insert(key, at: position, updateVersion)
    }

    /// Ends the appending.
    /// - Parameter isComplete: the query has no other results.
    mutating func close(isComplete: Bool) { self.isComplete = isComplete }

    /// The update version of a document in the window.
    mutating func updateVersion(of key: [UInt8]) -> Int64? {
        guard let (position, updateVersion) = known[key] else { return nil }
        return ranks.contains(rank(of: position)) ? updateVersion : nil
    }

    /// Iterates over the window in order.
    mutating func forEach(_ body: ([UInt8], Int64) throws(Status) -> Void) throws(Status) {
        var keys: [[UInt8]] = []
        keys.reserveCapacity(max(0, min(ranks.upperBound, count) - ranks.lowerBound))
        entries.forEach(in: ranks) { keys.append($0.key) }
        for key in keys {
            if let updateVersion = known[key]?.updateVersion { try body(key, updateVersion) }
        }
    }

    // MARK: Changes

    /// Applies a document's change.
    /// - Parameter position: nil when the document is no longer a result.
    mutating func change(_ key: [UInt8], to position: [UInt8]?, _ updateVersion: Int64) -> Effect {
        var seen: [[UInt8]] = []
        if let old = known[key]?.position {
            let rank = rank(of: old)
            if old == position {
                known[key] = (old, updateVersion)
                return .seen(ranks.contains(rank) ? [key] : [])
            }
            remove(key, at: old)
            // Later documents move up: one leaves the window at the start, one enters at the end.
            if rank < ranks.lowerBound {
                see(ranks.lowerBound - 1, &seen)
            } else if rank < ranks.upperBound {
                seen.append(key)
            }
            if rank < ranks.upperBound { see(ranks.upperBound - 1, &seen) }
        }
        if let position, isWithinReach(position) {
            let rank = rank(of: position)
            insert(key, at: position, updateVersion)
            // Later documents move down.
            if rank < ranks.lowerBound {
                see(ranks.lowerBound, &seen)
            } else if rank < ranks.upperBound {
                seen.append(key)
            }
            if rank < ranks.upperBound { see(ranks.upperBound, &seen) }
        }
        while count > countMax, let last = entries.last {
            remove(last.key, at: last.position)
            isComplete = false
        }
        return count < ranks.upperBound && !isComplete ? .exhausted : .seen(seen)
    }

    /// Whether the cache covers a position. It covers positions behind the last entry only when the query has no other
    /// results.
    private func isWithinReach(_ position: [UInt8]) -> Bool {
        if isComplete { return true }
        guard let last = entries.last else { return false }
        return UTF8Order.compare(position, last.position) < 0
    }

    private mutating func rank(of position: [UInt8]) -> Int { entries.rank(of: Entry(position: position, key: [])) }

    private mutating func see(_ rank: Int, _ seen: inout [[UInt8]]) {
        if rank >= 0, rank < count, let entry = entries.at(rank) { seen.append(entry.key) }
    }

    private mutating func insert(_ key: [UInt8], at position: [UInt8], _ updateVersion: Int64) {
        entries.insert(Entry(position: position, key: key))
        known[key] = (position, updateVersion)
        sizeBytes += Self.size(key, position)
    }

    private mutating func remove(_ key: [UInt8], at position: [UInt8]) {
        entries.remove(Entry(position: position, key: key))
        known[key] = nil
        sizeBytes -= Self.size(key, position)
    }
}
