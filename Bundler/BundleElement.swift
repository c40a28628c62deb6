import HearthModel

/// The parts of a bundle, as values of the model.
package enum BundleElement: Sendable {
    case metadata(BundleMetadata)
    case namedQuery(BundleQuery)
    /// A document with its metadata, or a missing one.
    case document(BundleDocument)
}

/// The first element of a bundle.
package struct BundleMetadata: Sendable, Equatable {
    /// The name of the bundle: a later one with the same id replaces it.
    package var id: String
    /// The latest read time in the bundle. Of two bundles with one id the one with the later time is newer.
    package var createTime: Timestamp
    package var version: Int
    /// The number of distinct documents, including missing ones.
    package var totalDocuments: Int
    /// The number of bytes after the metadata element. It only serves progress and is not checked.
    package var totalBytes: Int64

    /// The only version of the format.
    static let currentVersion = 1

    package init(id: String, createTime: Timestamp, version: Int = 1, totalDocuments: Int, totalBytes: Int64) {
        self.id = id
        self.createTime = createTime
        self.version = version
        self.totalDocuments = totalDocuments
        self.totalBytes = totalBytes
    }
}

/// A named query.
package struct BundleQuery: Sendable {
    /// Which end of the ordered result a limit selects.
    package enum LimitType: Sendable {
        case first
        case last
    }

    package var name: String
    /// The user's query; for a limit to the last results, directions and cursors are not reversed. It has one
    /// collection or collection group, and neither offset nor projection; a cursor has values.
    package var query: Query
    package var limitType: LimitType
    /// The read time of the result: a listen resumes from here.
    package var readTime: Timestamp

    package init(name: String, query: Query, limitType: LimitType, readTime: Timestamp) {
        self.name = name
        self.query = query
        self.limitType = limitType
        self.readTime = readTime
    }
}

/// A document at the time of the bundle.
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
    /// The names of the queries whose results contain the document. The bundle need not contain queries with these
    /// names.
    package var queries: [String]
    /// nil for a missing document.
    package var contents: Contents?
    /// Whether the bundle had this document before. The later contents count, together with the queries of the first.
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
    /// The version in a cache: the time of the last write, or the time at which the document was found missing.
    package var version: Timestamp { contents?.updateTime ?? readTime }
}
