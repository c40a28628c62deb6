/// The progress of loading a bundle.
public final class LoadBundleTaskProgress: Sendable, Hashable {
    /// The number of documents loaded so far.
    public let documentsLoaded: Int
    /// The number of documents in the bundle.
    public let totalDocuments: Int
    /// The number of bytes read so far.
    public let bytesLoaded: Int
    /// The size of the bundle in bytes, according to its metadata.
    public let totalBytes: Int
    /// Whether the loading continues, succeeded or failed.
    public let state: LoadBundleTaskState

    init(_ progress: BundleProgress) {
        documentsLoaded = progress.documentsLoaded
        totalDocuments = progress.totalDocuments
        bytesLoaded = progress.bytesLoaded
        totalBytes = progress.totalBytes
        state = progress.state
    }

    public static func == (left: LoadBundleTaskProgress, right: LoadBundleTaskProgress) -> Bool {
        left.documentsLoaded == right.documentsLoaded && left.totalDocuments == right.totalDocuments
            && left.bytesLoaded == right.bytesLoaded && left.totalBytes == right.totalBytes && left.state == right.state
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(documentsLoaded)
        hasher.combine(bytesLoaded)
        hasher.combine(state)
    }
}
