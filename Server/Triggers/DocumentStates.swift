import HearthDocuments
import HearthEngine
import HearthModel

/// The states of documents before and after commits of the past, from the change feed.
///
/// The feed has the state before each change; the state after one is that before the document's next change, or the present.
/// A document's changes form a chain that leads backwards from the present, so it is walked once, and remembered for the
/// events that follow: it costs eight bytes for each change that was not asked for yet.
package struct DocumentStates {
    /// The versions of a document's changes, the oldest last.
    private var chains: [[UInt8]: [Int64]] = [:]
    private var versionCount = 0
    private let versionsMax: Int

    /// - Parameter versionsMax: how many changes are remembered of all documents.
    package init(versionsMax: Int = 1 << 20) { self.versionsMax = versionsMax }

    /// - Throws: DATA_LOSS when the feed has no such change.
    package mutating func states(
        of event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) -> (before: StoredDocument?, after: StoredDocument?) {
        var chain = chains.removeValue(forKey: event.key) ?? []
        versionCount -= chain.count
        // Another trigger may have got further.
        if let last = chain.last, last > event.version { chain = [] }
        try extend(&chain, of: event, in: snapshot)
        // What comes before is not asked for again.
        while let last = chain.last, last < event.version { chain.removeLast() }
        guard chain.last == event.version else { throw Self.unknown(event) }
        let before = try Feed.stateBefore(event.version, event.key, in: snapshot)
        let after: StoredDocument?
        if chain.count > 1 {
            after = try Feed.stateBefore(chain[chain.count - 2], event.key, in: snapshot)
        } else {
            after = try snapshot.document(event.key)
        }
        keep(chain, of: event.key)
        return (before, after)
    }

    /// Adds the changes since the chain was walked, or all from the event on.
    private func extend(
        _ chain: inout [Int64], of event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) {
        let known = max(chain.first ?? 0, event.version)
        var newer: [Int64] = []
        var version = try Feed.lastChange(of: event.key, in: snapshot)
        while version > known {
            newer.append(version)
            version = try Feed.previousVersion(version, event.key, in: snapshot)
        }
        // A chain that doesn't go through the event is of a history that is gone.
        if version != known { throw Self.unknown(event) }
        chain = chain.isEmpty ? newer + [event.version] : newer + chain
    }

    private static func unknown(_ event: Delivery.Event) -> Status {
        Status(.dataLoss, "The change feed has no change of version \(event.version) that a trigger waits for.")
    }

    private mutating func keep(_ chain: [Int64], of key: [UInt8]) {
        if chain.count < 2 { return }
        while versionCount + chain.count > versionsMax, let other = chains.keys.first {
            versionCount -= chains.removeValue(forKey: other)?.count ?? 0
        }
        // A longer one than all that may be remembered is walked again for each of its events.
        if chain.count > versionsMax { return }
        versionCount += chain.count
        chains[key] = chain
    }
}
