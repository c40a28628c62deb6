import HearthDocuments
import HearthEngine
import HearthModel

/// The states of documents before and after commits of the past, from the change feed.
///
/// The feed has the state before each change; the state after one is that before the document's next change, or the present.
/// A document's changes form a list that leads backwards from the present. It is walked once, when the first event is asked
/// for, and once more in pieces: what is remembered for the events that follow is every `pieceMax`th change, and the
/// changes of one piece. So an event costs two steps however many there are, and a document with n changes that wait has
/// n / `pieceMax` + `pieceMax` numbers.
package struct DocumentStates {
    /// The changes of a document from an event on.
    private struct Chain {
        /// Versions of changes, the oldest last, which is that of the event that was asked for.
        var near: [Int64] = []
        /// The newest changes of the pieces behind, the oldest last. The next piece ends where `near` begins.
        var far: [Int64] = []

        /// About, in numbers: with the key, and what a table has beside it.
        func size(_ key: [UInt8]) -> Int { near.count + far.count + 16 + key.count / 8 }
    }

    private var chains: [[UInt8]: Chain] = [:]
    private var size = 0
    private let sizeMax: Int

    static let pieceMax = 128

    /// - Parameter versionsMax: how many changes are remembered of all documents, about.
    package init(versionsMax: Int = 1 << 20) { sizeMax = versionsMax }

    /// - Throws: DATA_LOSS when the feed has no such change.
    package mutating func states(
        of event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) -> (before: StoredDocument?, after: StoredDocument?) {
        var chain = chains.removeValue(forKey: event.key)
        if let chain { size -= chain.size(event.key) }
        // Another trigger may have got further.
        if let last = chain?.near.last, last > event.version { chain = nil }
        var advanced = chain ?? Chain()
        let next = try Self.advance(&advanced, to: event, in: snapshot)
        let before = try Feed.stateBefore(event.version, event.key, in: snapshot)
        let after: StoredDocument? =
            if let next {
                try Feed.stateBefore(next, event.key, in: snapshot)
            } else {
                try snapshot.document(event.key)
            }
        if next != nil { keep(advanced, of: event.key) }
        return (before, after)
    }

    /// Lets a chain begin at an event.
    /// - Returns: the version of the next change; nil when the event is the last.
    private static func advance(
        _ chain: inout Chain, to event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) -> Int64? {
        // What comes before is not asked for again.
        while let last = chain.near.last, last < event.version { chain.near.removeLast() }
        while let last = chain.far.last, last <= event.version { chain.far.removeLast() }
        if let last = chain.near.last, last != event.version { throw unknown(event) }
        while chain.near.count < 2 {
            if let newest = chain.far.popLast() {
                let pieces = try walk(from: newest, to: event, in: snapshot)
                chain.near = pieces.near
                chain.far += pieces.far
            } else {
                let newest = try Feed.lastChange(of: event.key, in: snapshot)
                chain = try walk(from: newest, to: event, in: snapshot)
                if newest == event.version { return nil }
            }
        }
        return chain.near[chain.near.count - 2]
    }

    /// The changes from an event on up to a newer one.
    private static func walk(
        from newest: Int64, to event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) -> Chain {
        var chain = Chain()
        var version = newest
        while version > event.version {
            if chain.near.count == pieceMax {
                chain.far.append(chain.near[0])
                chain.near.removeAll(keepingCapacity: true)
            }
            chain.near.append(version)
            version = try Feed.previousVersion(version, event.key, in: snapshot)
        }
        // A list that doesn't go through the event is of a history that is gone.
        if version != event.version { throw unknown(event) }
        chain.near.append(event.version)
        return chain
    }

    private static func unknown(_ event: Delivery.Event) -> Status {
        Status(.dataLoss, "The change feed has no change of version \(event.version) that a trigger waits for.")
    }

    private mutating func keep(_ chain: Chain, of key: [UInt8]) {
        let count = chain.size(key)
        while size + count > sizeMax, let other = chains.first {
            size -= other.value.size(other.key)
            chains[other.key] = nil
        }
        // A longer one than all that may be remembered is walked again for each of its events.
        if count > sizeMax { return }
        size += count
        chains[key] = chain
    }
}
