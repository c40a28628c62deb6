import HearthModel

/// google.firestore.bundle.BundledQuery
public struct BundledQueryMessage: WireMessage {
    public struct LimitType: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let first = LimitType(rawValue: 0)
        public static let last = LimitType(rawValue: 1)

        public static let typeName = "google.firestore.bundle.BundledQuery.LimitType"
        public static let names: [(number: Int32, name: StaticString)] = [(0, "FIRST"), (1, "LAST")]
    }

    public var parent: String
    public var structuredQuery: StructuredQueryMessage?
    public var limitType: LimitType

    public init() {
        self.init(parent: "")
    }

    public init(
        parent: String = "", structuredQuery: StructuredQueryMessage? = nil, limitType: LimitType = LimitType()
    ) {
        self.parent = parent
        self.structuredQuery = structuredQuery
        self.limitType = limitType
    }

    public static let typeName = "google.firestore.bundle.BundledQuery"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.enumeration(3, "limit_type", &limitType)
    }
}

/// google.firestore.bundle.NamedQuery
public struct NamedQueryMessage: WireMessage {
    public var name: String
    public var bundledQuery: BundledQueryMessage?
    public var readTime: TimestampMessage?

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", bundledQuery: BundledQueryMessage? = nil, readTime: TimestampMessage? = nil) {
        self.name = name
        self.bundledQuery = bundledQuery
        self.readTime = readTime
    }

    public static let typeName = "google.firestore.bundle.NamedQuery"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "bundled_query", &bundledQuery)
        try visitor.message(3, "read_time", &readTime)
    }
}

/// google.firestore.bundle.BundledDocumentMetadata
public struct BundledDocumentMetadataMessage: WireMessage {
    public var name: String
    public var readTime: TimestampMessage?
    public var exists: Bool
    public var queries: [String]

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", readTime: TimestampMessage? = nil, exists: Bool = false, queries: [String] = []) {
        self.name = name
        self.readTime = readTime
        self.exists = exists
        self.queries = queries
    }

    public static let typeName = "google.firestore.bundle.BundledDocumentMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "read_time", &readTime)
        try visitor.bool(3, "exists", &exists)
        try visitor.strings(4, "queries", &queries)
    }
}

/// google.firestore.bundle.BundleMetadata
public struct BundleMetadataMessage: WireMessage {
    public var id: String
    public var createTime: TimestampMessage?
    public var version: UInt32
    public var totalDocuments: UInt32
    public var totalBytes: UInt64

    public init() {
        self.init(id: "")
    }

    public init(
        id: String = "", createTime: TimestampMessage? = nil, version: UInt32 = 0, totalDocuments: UInt32 = 0,
        totalBytes: UInt64 = 0
    ) {
        self.id = id
        self.createTime = createTime
        self.version = version
        self.totalDocuments = totalDocuments
        self.totalBytes = totalBytes
    }

    public static let typeName = "google.firestore.bundle.BundleMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "id", &id)
        try visitor.message(2, "create_time", &createTime)
        try visitor.uint32(3, "version", &version)
        try visitor.uint32(4, "total_documents", &totalDocuments)
        try visitor.uint64(5, "total_bytes", &totalBytes)
    }
}

/// google.firestore.bundle.BundleElement
public struct BundleElementMessage: WireMessage {
    public var metadata: BundleMetadataMessage?
    public var namedQuery: NamedQueryMessage?
    public var documentMetadata: BundledDocumentMetadataMessage?
    public var document: DocumentMessage?

    public init() {
        self.init(metadata: nil)
    }

    public init(
        metadata: BundleMetadataMessage? = nil, namedQuery: NamedQueryMessage? = nil,
        documentMetadata: BundledDocumentMetadataMessage? = nil, document: DocumentMessage? = nil
    ) {
        self.metadata = metadata
        self.namedQuery = namedQuery
        self.documentMetadata = documentMetadata
        self.document = document
    }

    public static let typeName = "google.firestore.bundle.BundleElement"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "metadata", oneof: "element_type", &metadata)
        try visitor.message(2, "named_query", oneof: "element_type", &namedQuery)
        try visitor.message(3, "document_metadata", oneof: "element_type", &documentMetadata)
        try visitor.message(4, "document", oneof: "element_type", &document)
    }
}
