import HearthEngine
import HearthModel

/// The versions at which documents changed after a reader's position, from the change feed.
///
/// A document's changes form a chain that leads backwards from the present (see `Feed`), but a reader goes forwards. So a chain
/// is walked once, and the part next to the reader is remembered, eight bytes for each change: a document that changed a
/// million times costs a few walks, not one a change.
struct DocumentChains {
    /// Versions of a document's changes, the oldest last.
    private var chains: [[UInt8]: [Int64]] = [:]
    private var versionCount = 0
    private let versionsMax: Int

    /// - Parameter versionsMax: how many changes are remembered, of all documents together.
    init(versionsMax: Int = 1 << 16) { self.versionsMax = versionsMax }

    /// The change of a document that follows the one of a version.
    /// - Parameter budget: pays for each step of a walk.
    /// - Throws: DATA_LOSS when the feed has no such change; what the budget throws.
    mutating func next(
        after version: Int64, _ key: [UInt8], in snapshot: any Snapshot, _ budget: FeedBudget
    ) throws(Status) -> Int64 {
        if let next = remembered(after: version, key) { return next }
        var newer: [Int64] = []
        var change = try Feed.lastChange(of: key, in: snapshot)
        while change > version {
            try budget.payStep()
            newer.append(change)
            // Only the end of the walk is of use: what lies nearer to the present is forgotten on the way.
            if newer.count >= 2 * versionsMax { newer.removeFirst(versionsMax) }
            change = try Feed.previousVersion(change, key, in: snapshot)
        }
        guard change == version, let next = newer.last else {
            throw Status(.dataLoss, "The change feed has no change of version \(version) that leads to the present.")
        }
        remember(newer, of: key)
        return next
    }

    private mutating func remembered(after version: Int64, _ key: [UInt8]) -> Int64? {
        guard var chain = chains.removeValue(forKey: key) else { return nil }
        versionCount -= chain.count
        while let last = chain.last, last <= version { chain.removeLast() }
        guard let next = chain.last else { return nil }
        versionCount += chain.count
        chains[key] = chain
        return next
    }

    private mutating func remember(_ chain: [Int64], of key: [UInt8]) {
        // The first is the answer; it is asked for again only when a step is repeated.
        let kept = chain.suffix(versionsMax)
        while versionCount + kept.count > versionsMax, let other = chains.keys.first {
            versionCount -= chains.removeValue(forKey: other)?.count ?? 0
        }
        versionCount += kept.count
        chains[key] = Array(kept)
    }
}
