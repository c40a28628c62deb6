import HearthEngine
import HearthModel

/// The documents of a scope that differ between a past version and the snapshot. It holds their keys; their contents at
/// that version are read from the feed, one document at a time.
struct PastOverlay {
    private let changes: ScopeChanges
    private let snapshot: any Snapshot

    init(_ changes: ScopeChanges, _ snapshot: any Snapshot) {
        self.changes = changes
        self.snapshot = snapshot
    }

    var isEmpty: Bool { changes.firstVersions.isEmpty }

    var heldBytes: Int { changes.sizeBytes }

    /// Whether the snapshot's document differs from that of the past version.
    func replaces(_ key: [UInt8]) -> Bool { changes.firstVersions[key] != nil }

    /// Their keys, in the order of their states in the feed.
    var keys: [[UInt8]] { changes.firstVersions.sorted { $0.value < $1.value }.map(\.key) }

    /// A replaced document at that version; nil when it did not exist.
    func document(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        guard let version = changes.firstVersions[key] else { return nil }
        return try Feed.stateBefore(version, key, in: snapshot)
    }
}
