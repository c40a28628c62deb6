import HearthEngine
import HearthModel

/// The versions at which documents changed after a reader's position, from the change feed.
///
/// A document's changes form a chain that leads backwards from the present (see `Feed`), but a reader goes forwards. So a chain
/// is walked once, and the part next to the reader is remembered, eight bytes for each change: a document that changed a
/// million times costs a few walks, not one a change. Documents share the memory, so that each costs a few.
struct DocumentChains {
    /// Versions of a document's changes, the oldest last.
    private var chains: [[UInt8]: [Int64]] = [:]
    /// Of the versions and the keys, in units of eight bytes.
    private var units = 0
    private let versionsMax: Int
    /// How many more are not remembered before the memory is shared anew.
    private var full = 0

    /// Memory of a key besides its bytes: two arrays and the slot in the table.
    private static let unitsPerKey = 12

    /// - Parameter versionsMax: how many changes are remembered, of all documents together; keys count as some.
    init(versionsMax: Int = 1 << 16) { self.versionsMax = versionsMax }

    private static func units(of key: [UInt8]) -> Int { unitsPerKey + key.count / 8 }

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
        remember(newer, of: key, after: version)
        return next
    }

    private mutating func remembered(after version: Int64, _ key: [UInt8]) -> Int64? {
        guard var chain = chains.removeValue(forKey: key) else { return nil }
        let count = chain.count
        while let last = chain.last, last <= version { chain.removeLast() }
        guard let next = chain.last else {
            units -= count + Self.units(of: key)
            return nil
        }
        units -= count - chain.count
        chains[key] = chain
        return next
    }

    /// - Parameter version: the reader's position.
    private mutating func remember(_ chain: [Int64], of key: [UInt8], after version: Int64) {
        let keyUnits = Self.units(of: key)
        if units + keyUnits + share > versionsMax {
            if full > 0 {
                full -= 1
                return
            }
            shrink(after: version)
            if units + keyUnits + share > versionsMax {
                // Too many documents for a share each: the next change of this one is found by another walk.
                full = chains.count
                return
            }
        }
        // The first is the answer; it is asked for again only when a step is repeated.
        let kept = chain.suffix(share)
        units += kept.count + keyUnits
        chains[key] = Array(kept)
    }

    /// Versions of each document, the one that comes included. All together take half of the memory, so that as many documents
    /// as there are come until it has to be shared anew.
    private var share: Int { max(1, versionsMax / (2 * (chains.count + 1))) }

    private mutating func shrink(after version: Int64) {
        let share = share
        var rest: [[UInt8]: [Int64]] = [:]
        units = 0
        // Those that the reader has passed are of no use.
        for (key, chain) in chains where (chain.first ?? 0) > version {
            rest[key] = chain.count > share ? Array(chain.suffix(share)) : chain
            units += min(chain.count, share) + Self.units(of: key)
        }
        chains = rest
    }
}
