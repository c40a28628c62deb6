internal import HearthSync

/// What a listener wants to hear, and from where.
public final class SnapshotListenOptions: Sendable, Hashable {
    public let source: ListenSource
    /// Whether to call when only `metadata` of a document or of the query changed.
    public let includeMetadataChanges: Bool

    public init() {
        source = .default
        includeMetadataChanges = false
    }

    private init(source: ListenSource, includeMetadataChanges: Bool) {
        self.source = source
        self.includeMetadataChanges = includeMetadataChanges
    }

    /// A copy with another source.
    @discardableResult
    public func withSource(_ source: ListenSource) -> SnapshotListenOptions {
        SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
    }

    /// A copy with another choice.
    @discardableResult
    public func withIncludeMetadataChanges(_ includeMetadataChanges: Bool) -> SnapshotListenOptions {
        SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
    }

    public static func == (left: SnapshotListenOptions, right: SnapshotListenOptions) -> Bool {
        left.source == right.source && left.includeMetadataChanges == right.includeMetadataChanges
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(source)
        hasher.combine(includeMetadataChanges)
    }

    var model: SyncClient.ListenOptions {
        SyncClient.ListenOptions(
            includesDocumentMetadataChanges: includeMetadataChanges,
            includesQueryMetadataChanges: includeMetadataChanges, source: source == .cache ? .cache : .default)
    }
}
