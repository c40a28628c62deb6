import HearthModel

/// google.firestore.v1.ListenRequest
public struct ListenRequest: WireMessage {
    public var database: String
    public var addTarget: TargetMessage?
    public var removeTarget: Int32?
    public var labels: StringMap
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
        database: String = "", addTarget: TargetMessage? = nil, removeTarget: Int32? = nil,
        labels: StringMap = StringMap(), requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.addTarget = addTarget
        self.removeTarget = removeTarget
        self.labels = labels
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.ListenRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.message(2, "add_target", oneof: "target_change", &addTarget)
        try visitor.int32(3, "remove_target", oneof: "target_change", &removeTarget)
        try visitor.stringMap(4, "labels", &labels)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListenResponse
public struct ListenResponse: WireMessage {
    public var targetChange: TargetChangeMessage?
    public var documentChange: DocumentChangeMessage?
    public var documentDelete: DocumentDeleteMessage?
    public var documentRemove: DocumentRemoveMessage?
    public var filter: ExistenceFilterMessage?

    public init() {
        self.init(targetChange: nil)
    }

    public init(
        targetChange: TargetChangeMessage? = nil, documentChange: DocumentChangeMessage? = nil,
        documentDelete: DocumentDeleteMessage? = nil, documentRemove: DocumentRemoveMessage? = nil,
        filter: ExistenceFilterMessage? = nil
    ) {
        self.targetChange = targetChange
        self.documentChange = documentChange
        self.documentDelete = documentDelete
        self.documentRemove = documentRemove
        self.filter = filter
    }

    public static let typeName = "google.firestore.v1.ListenResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(2, "target_change", oneof: "response_type", &targetChange)
        try visitor.message(3, "document_change", oneof: "response_type", &documentChange)
        try visitor.message(4, "document_delete", oneof: "response_type", &documentDelete)
        try visitor.message(5, "filter", oneof: "response_type", &filter)
        try visitor.message(6, "document_remove", oneof: "response_type", &documentRemove)
    }
}

/// google.firestore.v1.Target
public struct TargetMessage: WireMessage {
    public struct DocumentsTarget: WireMessage {
        public var documents: [String]

        public init() {
            self.init(documents: [])
        }

        public init(documents: [String] = []) {
            self.documents = documents
        }

        public static let typeName = "google.firestore.v1.Target.DocumentsTarget"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.strings(2, "documents", &documents)
        }
    }

    public struct QueryTarget: WireMessage {
        public var parent: String
        public var structuredQuery: StructuredQueryMessage?

        public init() {
            self.init(parent: "")
        }

        public init(parent: String = "", structuredQuery: StructuredQueryMessage? = nil) {
            self.parent = parent
            self.structuredQuery = structuredQuery
        }

        public static let typeName = "google.firestore.v1.Target.QueryTarget"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "parent", &parent)
            try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        }
    }

    public var query: QueryTarget?
    public var documents: DocumentsTarget?
    public var resumeToken: [UInt8]?
    public var readTime: TimestampMessage?
    public var targetId: Int32
    public var once: Bool
    public var expectedCount: Int32?

    public init() {
        self.init(query: nil)
    }

    public init(
        query: QueryTarget? = nil, documents: DocumentsTarget? = nil, resumeToken: [UInt8]? = nil,
        readTime: TimestampMessage? = nil, targetId: Int32 = 0, once: Bool = false, expectedCount: Int32? = nil
    ) {
        self.query = query
        self.documents = documents
        self.resumeToken = resumeToken
        self.readTime = readTime
        self.targetId = targetId
        self.once = once
        self.expectedCount = expectedCount
    }

    public static let typeName = "google.firestore.v1.Target"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(2, "query", oneof: "target_type", &query)
        try visitor.message(3, "documents", oneof: "target_type", &documents)
        try visitor.bytes(4, "resume_token", oneof: "resume_type", &resumeToken)
        try visitor.int32(5, "target_id", &targetId)
        try visitor.bool(6, "once", &once)
        try visitor.message(11, "read_time", oneof: "resume_type", &readTime)
        try visitor.int32Value(12, "expected_count", &expectedCount)
    }
}

/// google.firestore.v1.TargetChange
public struct TargetChangeMessage: WireMessage {
    public struct TargetChangeType: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let noChange = TargetChangeType(rawValue: 0)
        public static let add = TargetChangeType(rawValue: 1)
        public static let remove = TargetChangeType(rawValue: 2)
        public static let current = TargetChangeType(rawValue: 3)
        public static let reset = TargetChangeType(rawValue: 4)

        public static let typeName = "google.firestore.v1.TargetChange.TargetChangeType"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "NO_CHANGE"), (1, "ADD"), (2, "REMOVE"), (3, "CURRENT"), (4, "RESET"),
        ]
    }

    public var targetChangeType: TargetChangeType
    public var targetIds: [Int32]
    public var cause: StatusMessage?
    public var resumeToken: [UInt8]
    public var readTime: TimestampMessage?

    public init() {
        self.init(targetChangeType: TargetChangeType())
    }

    public init(
        targetChangeType: TargetChangeType = TargetChangeType(), targetIds: [Int32] = [], cause: StatusMessage? = nil,
        resumeToken: [UInt8] = [], readTime: TimestampMessage? = nil
    ) {
        self.targetChangeType = targetChangeType
        self.targetIds = targetIds
        self.cause = cause
        self.resumeToken = resumeToken
        self.readTime = readTime
    }

    public static let typeName = "google.firestore.v1.TargetChange"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "target_change_type", &targetChangeType)
        try visitor.int32s(2, "target_ids", &targetIds)
        try visitor.message(3, "cause", &cause)
        try visitor.bytes(4, "resume_token", &resumeToken)
        try visitor.message(6, "read_time", &readTime)
    }
}

/// google.firestore.v1.DocumentChange
public struct DocumentChangeMessage: WireMessage {
    public var document: DocumentMessage?
    public var targetIds: [Int32]
    public var removedTargetIds: [Int32]

    public init() {
        self.init(document: nil)
    }

    public init(document: DocumentMessage? = nil, targetIds: [Int32] = [], removedTargetIds: [Int32] = []) {
        self.document = document
        self.targetIds = targetIds
        self.removedTargetIds = removedTargetIds
    }

    public static let typeName = "google.firestore.v1.DocumentChange"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "document", &document)
        try visitor.int32s(5, "target_ids", &targetIds)
        try visitor.int32s(6, "removed_target_ids", &removedTargetIds)
    }
}

/// google.firestore.v1.DocumentDelete
public struct DocumentDeleteMessage: WireMessage {
    public var document: String
    public var removedTargetIds: [Int32]
    public var readTime: TimestampMessage?

    public init() {
        self.init(document: "")
    }

    public init(document: String = "", removedTargetIds: [Int32] = [], readTime: TimestampMessage? = nil) {
        self.document = document
        self.removedTargetIds = removedTargetIds
        self.readTime = readTime
    }

    public static let typeName = "google.firestore.v1.DocumentDelete"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.message(4, "read_time", &readTime)
        try visitor.int32s(6, "removed_target_ids", &removedTargetIds)
    }
}

/// google.firestore.v1.DocumentRemove
public struct DocumentRemoveMessage: WireMessage {
    public var document: String
    public var removedTargetIds: [Int32]
    public var readTime: TimestampMessage?

    public init() {
        self.init(document: "")
    }

    public init(document: String = "", removedTargetIds: [Int32] = [], readTime: TimestampMessage? = nil) {
        self.document = document
        self.removedTargetIds = removedTargetIds
        self.readTime = readTime
    }

    public static let typeName = "google.firestore.v1.DocumentRemove"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.int32s(2, "removed_target_ids", &removedTargetIds)
        try visitor.message(4, "read_time", &readTime)
    }
}

/// google.firestore.v1.ExistenceFilter
public struct ExistenceFilterMessage: WireMessage {
    public var targetId: Int32
    public var count: Int32
    public var unchangedNames: BloomFilterMessage?

    public init() {
        self.init(targetId: 0)
    }

    public init(targetId: Int32 = 0, count: Int32 = 0, unchangedNames: BloomFilterMessage? = nil) {
        self.targetId = targetId
        self.count = count
        self.unchangedNames = unchangedNames
    }

    public static let typeName = "google.firestore.v1.ExistenceFilter"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int32(1, "target_id", &targetId)
        try visitor.int32(2, "count", &count)
        try visitor.message(3, "unchanged_names", &unchangedNames)
    }
}

/// google.firestore.v1.BloomFilter
public struct BloomFilterMessage: WireMessage {
    public var bits: BitSequenceMessage?
    public var hashCount: Int32

    public init() {
        self.init(bits: nil)
    }

    public init(bits: BitSequenceMessage? = nil, hashCount: Int32 = 0) {
        self.bits = bits
        self.hashCount = hashCount
    }

    public static let typeName = "google.firestore.v1.BloomFilter"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "bits", &bits)
        try visitor.int32(2, "hash_count", &hashCount)
    }
}

/// google.firestore.v1.BitSequence
public struct BitSequenceMessage: WireMessage {
    public var bitmap: [UInt8]
    public var padding: Int32

    public init() {
        self.init(bitmap: [])
    }

    public init(bitmap: [UInt8] = [], padding: Int32 = 0) {
        self.bitmap = bitmap
        self.padding = padding
    }

    public static let typeName = "google.firestore.v1.BitSequence"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "bitmap", &bitmap)
        try visitor.int32(2, "padding", &padding)
    }
}
