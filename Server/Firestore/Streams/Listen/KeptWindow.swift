import HearthHost
import HearthModel
import HearthDocuments

/// The results of a query with a limit or an offset, from the first one on and some behind the last, in order: what a change
/// does to the window is worked out from it, without a look into an index.
///
/// The order is that of `NormalizedQuery.position`, in which no two documents stand at the same position. A change costs a
/// look-up and a part of a chunk, however long the window is.
struct KeptWindow {
    private struct Entry: Sendable {
        var position: [UInt8]
        var key: [UInt8]
    }

    /// What a change of a document did.
    enum Effect: Equatable {
        /// Everything that came, left or changed in the window is among these keys.
        case seen([[UInt8]])
        /// What is kept doesn't reach to the end of the window any more.
        case exhausted
    }

    /// The ranks of the window.
    let ranks: Range<Int>
    /// Nothing of the result lies behind the last entry.
    private(set) var isComplete: Bool
    /// Beyond it the last are let go.
    private let countMax: Int
    private var entries = SortedChunks<Entry>([]) { UTF8Order.compare($0.position, $1.position) < 0 }
    private var known: [[UInt8]: (position: [UInt8], updateVersion: Int64)] = [:]
    /// About what it takes.
    private(set) var sizeBytes = 0

    /// Of an entry, besides the bytes of its key and its position.
    private static let entryBytes = 192
    /// A window behind more results isn't kept: they would have to be, too.
    static let offsetMax = 1000

    /// Results behind a window that are kept, so that one that leaves seldom costs a query: in proportion to what that costs.
    private static func surplus(_ limit: Int) -> Int { max(8, limit / 2) }

    /// Of no results so far.
    /// - Returns: nil when they aren't to be kept.
    init?(of query: Query) {
        guard query.offset <= Self.offsetMax else { return nil }
        isComplete = false
        guard let limit = query.limit else {
            ranks = query.offset..<Int.max
            countMax = .max
            return
        }
        let (end, overflow) = query.offset.addingReportingOverflow(limit)
        // More than any memory has room for.
        guard !overflow, end < Limits.listenKeptWindowBytesMax / Self.entryBytes else { return nil }
        ranks = query.offset..<end
        countMax = end + 2 * Self.surplus(limit)
    }

    var count: Int { entries.count }
    /// For tests that count work.
    var steps: Int { entries.steps }

    /// Up to how many results are to be appended.
    var wantedCount: Int? {
        ranks.upperBound == .max ? nil : ranks.upperBound + Self.surplus(ranks.count)
    }

    static func size(_ key: [UInt8], _ position: [UInt8]) -> Int { key.count + position.count + entryBytes }

    /// Adds the next result of a query.
    mutating func append(_ key: [UInt8], at position: [UInt8], _ updateVersion: Int64) {
        insert(key, at: position, updateVersion)
    }

    /// No more are appended.
    /// - Parameter isComplete: the query has no other results.
    mutating func close(isComplete: Bool) { self.isComplete = isComplete }

    /// The update version of a document that stands in the window.
    mutating func updateVersion(of key: [UInt8]) -> Int64? {
        guard let (position, updateVersion) = known[key] else { return nil }
        return ranks.contains(rank(of: position)) ? updateVersion : nil
    }

    /// Those in the window, in order.
    mutating func forEach(_ body: ([UInt8], Int64) throws(Status) -> Void) throws(Status) {
        var keys: [[UInt8]] = []
        keys.reserveCapacity(max(0, min(ranks.upperBound, count) - ranks.lowerBound))
        entries.forEach(in: ranks) { keys.append($0.key) }
        for key in keys {
            if let updateVersion = known[key]?.updateVersion { try body(key, updateVersion) }
        }
    }

    // MARK: Changes

    /// Works in what a commit made of a document.
    /// - Parameter position: nil when it isn't among the results any more.
    mutating func change(_ key: [UInt8], to position: [UInt8]?, _ updateVersion: Int64) -> Effect {
        var seen: [[UInt8]] = []
        if let old = known[key]?.position {
            let rank = rank(of: old)
            if old == position {
                known[key] = (old, updateVersion)
                return .seen(ranks.contains(rank) ? [key] : [])
            }
            remove(key, at: old)
            // Those behind it move up: one leaves at the beginning, one enters at the end.
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
            // Those behind it move down.
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

    /// Whether what lies at a position is known: behind the last entry it is only when there is nothing else.
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
