import HearthModel

/// google.firestore.bundle.BundledQuery
package struct BundledQueryMessage: WireMessage {
    package struct LimitType: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let first = LimitType(rawValue: 0)
        package static let last = LimitType(rawValue: 1)

        package static let typeName = "google.firestore.bundle.BundledQuery.LimitType"
        package static let names: [(number: Int32, name: StaticString)] = [(0, "FIRST"), (1, "LAST")]
    }

    package var parent: String
    package var structuredQuery: StructuredQueryMessage?
    package var limitType: LimitType

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", structuredQuery: StructuredQueryMessage? = nil, limitType: LimitType = LimitType()
    ) {
        self.parent = parent
        self.structuredQuery = structuredQuery
        self.limitType = limitType
    }

    package static let typeName = "google.firestore.bundle.BundledQuery"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.enumeration(3, "limit_type", &limitType)
    }
}

/// google.firestore.bundle.NamedQuery
package struct NamedQueryMessage: WireMessage {
    package var name: String
    package var bundledQuery: BundledQueryMessage?
    package var readTime: TimestampMessage?

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", bundledQuery: BundledQueryMessage? = nil, readTime: TimestampMessage? = nil) {
        self.name = name
        self.bundledQuery = bundledQuery
        self.readTime = readTime
    }

    package static let typeName = "google.firestore.bundle.NamedQuery"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "bundled_query", &bundledQuery)
        try visitor.message(3, "read_time", &readTime)
    }
}

/// google.firestore.bundle.BundledDocumentMetadata
package struct BundledDocumentMetadataMessage: WireMessage {
    package var name: String
    package var readTime: TimestampMessage?
    package var exists: Bool
    package var queries: [String]

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", readTime: TimestampMessage? = nil, exists: Bool = false, queries: [String] = []) {
        self.name = name
        self.readTime = readTime
        self.exists = exists
        self.queries = queries
    }

    package static let typeName = "google.firestore.bundle.BundledDocumentMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "read_time", &readTime)
        try visitor.bool(3, "exists", &exists)
        try visitor.strings(4, "queries", &queries)
    }
}

/// google.firestore.bundle.BundleMetadata
package struct BundleMetadataMessage: WireMessage {
    package var id: String
    package var createTime: TimestampMessage?
    package var version: UInt32
    package var totalDocuments: UInt32
    package var totalBytes: UInt64

    package init() {
        self.init(id: "")
    }

    package init(
        id: String = "", createTime: TimestampMessage? = nil, version: UInt32 = 0, totalDocuments: UInt32 = 0,
        totalBytes: UInt64 = 0
    ) {
        self.id = id
        self.createTime = createTime
        self.version = version
        self.totalDocuments = totalDocuments
        self.totalBytes = totalBytes
    }

    package static let typeName = "google.firestore.bundle.BundleMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "id", &id)
        try visitor.message(2, "create_time", &createTime)
        try visitor.uint32(3, "version", &version)
        try visitor.uint32(4, "total_documents", &totalDocuments)
        try visitor.uint64(5, "total_bytes", &totalBytes)
    }
}

/// google.firestore.bundle.BundleElement
package struct BundleElementMessage: WireMessage {
    package var metadata: BundleMetadataMessage?
    package var namedQuery: NamedQueryMessage?
    package var documentMetadata: BundledDocumentMetadataMessage?
    package var document: DocumentMessage?

    package init() {
        self.init(metadata: nil)
    }

    package init(
        metadata: BundleMetadataMessage? = nil, namedQuery: NamedQueryMessage? = nil,
        documentMetadata: BundledDocumentMetadataMessage? = nil, document: DocumentMessage? = nil
    ) {
        self.metadata = metadata
        self.namedQuery = namedQuery
        self.documentMetadata = documentMetadata
        self.document = document
    }

    package static let typeName = "google.firestore.bundle.BundleElement"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "metadata", oneof: "element_type", &metadata)
        try visitor.message(2, "named_query", oneof: "element_type", &namedQuery)
        try visitor.message(3, "document_metadata", oneof: "element_type", &documentMetadata)
        try visitor.message(4, "document", oneof: "element_type", &document)
    }
}
