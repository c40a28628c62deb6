internal import HearthSync

/// The options of a listener.
public final class SnapshotListenOptions: Sendable, Hashable {
    /// The cache and the server, or the cache alone.
    public let source: ListenSource
    /// Whether the listener also runs when only `metadata` of a document or of the query changed.
    public let includeMetadataChanges: Bool

    /// The default source, without metadata changes.
    public init() {
        source = .default
        includeMetadataChanges = false
    }

    private init(source: ListenSource, includeMetadataChanges: Bool) {
        self.source = source
        self.includeMetadataChanges = includeMetadataChanges
    }

    /// A copy with another source.
    /// - Parameter source: the cache and the server, or the cache alone.
    /// - Returns: the copy.
    @discardableResult
    public func withSource(_ source: ListenSource) -> SnapshotListenOptions {
        SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
    }

    /// A copy with another value of `includeMetadataChanges`.
    /// - Parameter includeMetadataChanges: whether the listener also runs when only the metadata changed.
    /// - Returns: the copy.
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
