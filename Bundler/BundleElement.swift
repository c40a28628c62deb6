import HearthModel

/// What a bundle consists of, as values of the model.
package enum BundleElement: Sendable {
    case metadata(BundleMetadata)
    case namedQuery(BundleQuery)
    /// A document with its metadata, or a missing one.
    case document(BundleDocument)
}

/// The first element of a bundle.
package struct BundleMetadata: Sendable, Equatable {
    /// Names the bundle: a later one of the same id takes its place.
    package var id: String
    /// The latest read time in the bundle. Of two bundles with one id the one with the later time is newer.
    package var createTime: Timestamp
    package var version: Int
    /// Different documents, missing ones included.
    package var totalDocuments: Int
    /// Bytes behind the metadata element. It serves progress only and is not checked.
    package var totalBytes: Int64

    /// The only version of the format.
    package static let currentVersion = 1

    package init(id: String, createTime: Timestamp, version: Int = 1, totalDocuments: Int, totalBytes: Int64) {
        self.id = id
        self.createTime = createTime
        self.version = version
        self.totalDocuments = totalDocuments
        self.totalBytes = totalBytes
    }
}

/// A query under a name.
package struct BundleQuery: Sendable {
    /// Which end of the ordered result a limit keeps.
    package enum LimitType: Sendable {
        case first
        case last
    }

    package var name: String
    /// As the user asked: for the last ones neither directions nor cursors are turned round. It has one collection or
    /// collection group, and neither offset nor projection; a cursor has values.
    package var query: Query
    package var limitType: LimitType
    /// The moment of the result: a listen goes on from here.
    package var readTime: Timestamp

    package init(name: String, query: Query, limitType: LimitType, readTime: Timestamp) {
        self.name = name
        self.query = query
        self.limitType = limitType
        self.readTime = readTime
    }
}

/// A document as it was when the bundle was made.
package struct BundleDocument: Sendable {
    package struct Contents: Sendable {
        package var fields: MapValue
        package var createTime: Timestamp?
        package var updateTime: Timestamp

        package init(fields: MapValue, createTime: Timestamp?, updateTime: Timestamp) {
            self.fields = fields
            self.createTime = createTime
            self.updateTime = updateTime
        }
    }

    package var name: ResourceName
    package var readTime: Timestamp
    /// Names of the queries whose results hold the document. The bundle need not have queries of these names.
    package var queries: [String]
    /// nil for a missing document.
    package var contents: Contents?
    /// Whether the bundle had this document before. The later contents count, and the queries of the first.
    package var isRepeated: Bool

    package init(
        name: ResourceName, readTime: Timestamp, queries: [String], contents: Contents?, isRepeated: Bool = false
    ) {
        self.name = name
        self.readTime = readTime
        self.queries = queries
        self.contents = contents
        self.isRepeated = isRepeated
    }

    package var exists: Bool { contents != nil }
    /// The version in a cache: when it was written, or when it was found missing.
    package var version: Timestamp { contents?.updateTime ?? readTime }
}
