/// How fresh a snapshot is.
public final class SnapshotMetadata: Sendable, Hashable, CustomStringConvertible {
    /// Whether local writes are in it that the server hasn't answered yet.
    public let hasPendingWrites: Bool
    /// Whether it may be behind the server.
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
