import HearthModel

/// The parts of a bundle, as values of the model.
package enum BundleElement: Sendable {
    /// The first element.
    case metadata(BundleMetadata)
    /// A query with a name.
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
    /// The version of the format.
    package var version: Int
    /// The number of distinct documents, including missing ones.
    package var totalDocuments: Int
    /// The number of bytes after the metadata element. It only serves progress and is not checked.
    package var totalBytes: Int64

    /// The only version of the format.
    static let currentVersion = 1

    /// Metadata with the given members.
    /// - Parameters:
    ///   - id: the name of the bundle.
    ///   - createTime: the latest read time.
    ///   - version: the version of the format.
    ///   - totalDocuments: the number of distinct documents, including missing ones.
    ///   - totalBytes: the number of bytes after the metadata element.
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
        /// The first documents.
        case first
        /// The last documents.
        case last
    }

    /// The name in the bundle.
    package var name: String
    /// The user's query; for a limit to the last results, directions and cursors are not reversed. It has one
    /// collection or collection group, and neither offset nor projection; a cursor has values.
    package var query: Query
    /// Which end of the ordered result a limit selects; `first` without a limit.
    package var limitType: LimitType
    /// The read time of the result: a listen resumes from here.
    package var readTime: Timestamp

    /// A query with the given members.
    /// - Parameters:
    ///   - name: the name in the bundle.
    ///   - query: the user's query.
    ///   - limitType: which end of the ordered result a limit selects.
    ///   - readTime: the read time of the result.
    package init(name: String, query: Query, limitType: LimitType, readTime: Timestamp) {
        self.name = name
        self.query = query
        self.limitType = limitType
        self.readTime = readTime
    }
}

/// A document at the time of the bundle.
package struct BundleDocument: Sendable {
    /// What a document that exists has.
    package struct Contents: Sendable {
        /// The fields.
        package var fields: MapValue
        /// The time of the first write; nil when the bundle does not have it.
        package var createTime: Timestamp?
        /// The time of the last write.
        package var updateTime: Timestamp

        /// Contents with the given members.
        /// - Parameters:
        ///   - fields: the fields.
        ///   - createTime: the time of the first write.
        ///   - updateTime: the time of the last write.
        package init(fields: MapValue, createTime: Timestamp?, updateTime: Timestamp) {
            self.fields = fields
            self.createTime = createTime
            self.updateTime = updateTime
        }
    }

    /// The full name.
    package var name: ResourceName
    /// The time at which the document was read.
    package var readTime: Timestamp
    /// The names of the queries whose results contain the document. The bundle need not contain queries with these
    /// names.
    package var queries: [String]
    /// nil for a missing document.
    package var contents: Contents?
    /// Whether the bundle had this document before. The later contents count, together with the queries of the first.
    package var isRepeated: Bool

    /// A document with the given members.
    /// - Parameters:
    ///   - name: the full name.
    ///   - readTime: the time at which it was read.
    ///   - queries: the names of the queries whose results contain it.
    ///   - contents: nil for a missing document.
    ///   - isRepeated: whether the bundle had this document before.
    package init(
        name: ResourceName, readTime: Timestamp, queries: [String], contents: Contents?, isRepeated: Bool = false
    ) {
        self.name = name
        self.readTime = readTime
        self.queries = queries
        self.contents = contents
        self.isRepeated = isRepeated
    }

    /// Whether the document exists.
    package var exists: Bool { contents != nil }
    /// The version in a cache: the time of the last write, or the time at which the document was found missing.
    package var version: Timestamp { contents?.updateTime ?? readTime }
}
