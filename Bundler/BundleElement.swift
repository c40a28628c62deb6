import HearthModel

/// What a bundle consists of, as values of the model.
public enum BundleElement: Sendable {
    case metadata(BundleMetadata)
    case namedQuery(BundleQuery)
    /// A document with its metadata, or a missing one.
    case document(BundleDocument)
}

/// The first element of a bundle.
public struct BundleMetadata: Sendable, Equatable {
    /// Names the bundle: a later one of the same id takes its place.
    public var id: String
    /// The latest read time in the bundle. Of two bundles with one id the one with the later time is newer.
    public var createTime: Timestamp
    public var version: Int
    /// Different documents, missing ones included.
    public var totalDocuments: Int
    /// Bytes behind the metadata element. It serves progress only and is not checked.
    public var totalBytes: Int64

    /// The only version of the format.
    public static let currentVersion = 1

    public init(id: String, createTime: Timestamp, version: Int = 1, totalDocuments: Int, totalBytes: Int64) {
        self.id = id
        self.createTime = createTime
        self.version = version
        self.totalDocuments = totalDocuments
        self.totalBytes = totalBytes
    }
}

/// A query under a name.
public struct BundleQuery: Sendable {
    /// Which end of the ordered result a limit keeps.
    public enum LimitType: Sendable {
        case first
        case last
    }

    public var name: String
    /// As the user asked: for the last ones neither directions nor cursors are turned round. It has one collection or
    /// collection group, and neither offset nor projection; a cursor has values.
    public var query: Query
    public var limitType: LimitType
    /// The moment of the result: a listen goes on from here.
    public var readTime: Timestamp

    public init(name: String, query: Query, limitType: LimitType, readTime: Timestamp) {
        self.name = name
        self.query = query
        self.limitType = limitType
        self.readTime = readTime
    }
}

/// A document as it was when the bundle was made.
public struct BundleDocument: Sendable {
    public struct Contents: Sendable {
        public var fields: MapValue
        public var createTime: Timestamp?
        public var updateTime: Timestamp

        public init(fields: MapValue, createTime: Timestamp?, updateTime: Timestamp) {
            self.fields = fields
            self.createTime = createTime
            self.updateTime = updateTime
        }
    }

    public var name: ResourceName
    public var readTime: Timestamp
    /// Names of the queries whose results hold the document. The bundle need not have queries of these names.
    public var queries: [String]
    /// nil for a missing document.
    public var contents: Contents?
    /// Whether the bundle had this document before. The later contents count, and the queries of the first.
    public var isRepeated: Bool

    public init(
        name: ResourceName, readTime: Timestamp, queries: [String], contents: Contents?, isRepeated: Bool = false
    ) {
        self.name = name
        self.readTime = readTime
        self.queries = queries
        self.contents = contents
        self.isRepeated = isRepeated
    }

    public var exists: Bool { contents != nil }
    /// The version in a cache: when it was written, or when it was found missing.
    public var version: Timestamp { contents?.updateTime ?? readTime }
}
