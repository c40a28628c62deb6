import HearthEngine
import HearthModel

/// Reads the documents of a query's results, in the order in which an index returns their keys.
///
/// Often that is the order of the keys themselves: ids that grow with time in a query by time, or equal values, which
/// names order. Then the documents are adjacent in the store, and a walk along them costs a third of separate look-ups.
/// So a walk is tried first. When it does not lead to the next key, documents are looked up separately for a while; the
/// less often walks succeed, the longer.
final class DocumentFetcher {
    private let snapshot: any Snapshot
    private let reverse: Bool
    private var walk: (any KeyCursor)?
    /// Documents to look up before the next walk is tried.
    private var pause = 0
    private var lastPause = 0

    private static let pauseMax = 64

    /// - Parameter reverse: the keys are expected to descend.
    init(_ snapshot: any Snapshot, reverse: Bool) {
        self.snapshot = snapshot
        self.reverse = reverse
    }

    deinit { walk?.close() }

    func document(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        if pause > 0 {
            pause -= 1
            return try snapshot.document(key)
        }
        if let walk {
            if let document = try step(walk, to: key) {
                lastPause = 0
                return document
            }
        } else {
            let begun = try begin(key)
            walk = begun
            if let document = try step(begun, to: key) { return document }
        }
        walk?.close()
        walk = nil
        lastPause = min(Self.pauseMax, lastPause * 2 + 1)
        pause = lastPause
        return try snapshot.document(key)
    }

    /// The document at a key when the walk's next step leads there.
    private func step(_ walk: any KeyCursor, to key: [UInt8]) throws(Status) -> StoredDocument? {
        guard try walk.next() else { return nil }
        var document: StoredDocument?
        try walk.withRow { found, value throws(Status) in
            guard key.withUnsafeBytes({ UTF8Order.compare($0, found) == 0 }) else { return }
            document = try StoredDocument(stored: value)
        }
        return document
    }

    /// A walk whose first step leads to a key.
    private func begin(_ key: [UInt8]) throws(Status) -> any KeyCursor {
        let range = reverse ? KeyRange(lower: [], upper: key + [0]) : KeyRange(lower: key, upper: nil)
        return try snapshot.scan(.documents, range, reverse: reverse, values: true)
    }
}
