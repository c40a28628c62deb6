/// The origin of a snapshot's data.
public final class SnapshotMetadata: Sendable, Hashable, CustomStringConvertible {
    /// Whether the snapshot contains local writes without an answer of the server.
    public let hasPendingWrites: Bool
    /// Whether the snapshot may be older than the server's state.
    public let isFromCache: Bool

    init(hasPendingWrites: Bool, isFromCache: Bool) {
        self.hasPendingWrites = hasPendingWrites
        self.isFromCache = isFromCache
    }

    public static func == (left: SnapshotMetadata, right: SnapshotMetadata) -> Bool {
        left.hasPendingWrites == right.hasPendingWrites && left.isFromCache == right.isFromCache
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(hasPendingWrites)
        hasher.combine(isFromCache)
    }

    public var description: String {
        "SnapshotMetadata(hasPendingWrites: \(hasPendingWrites), isFromCache: \(isFromCache))"
    }
}
