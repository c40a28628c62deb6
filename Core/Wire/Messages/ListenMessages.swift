import HearthModel

/// google.firestore.v1.ListenRequest
package struct ListenRequest: WireMessage {
    package var database: String
    package var addTarget: TargetMessage?
    package var removeTarget: Int32?
    package var labels: StringMap
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", addTarget: TargetMessage? = nil, removeTarget: Int32? = nil,
        labels: StringMap = StringMap(), requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.addTarget = addTarget
        self.removeTarget = removeTarget
        self.labels = labels
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.ListenRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.message(2, "add_target", oneof: "target_change", &addTarget)
        try visitor.int32(3, "remove_target", oneof: "target_change", &removeTarget)
        try visitor.stringMap(4, "labels", &labels)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListenResponse
package struct ListenResponse: WireMessage {
    package var targetChange: TargetChangeMessage?
    package var documentChange: DocumentChangeMessage?
    package var documentDelete: DocumentDeleteMessage?
    package var documentRemove: DocumentRemoveMessage?
    package var filter: ExistenceFilterMessage?

    package init() {
        self.init(targetChange: nil)
    }

    package init(
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

    package static let typeName = "google.firestore.v1.ListenResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(2, "target_change", oneof: "response_type", &targetChange)
        try visitor.message(3, "document_change", oneof: "response_type", &documentChange)
        try visitor.message(4, "document_delete", oneof: "response_type", &documentDelete)
        try visitor.message(5, "filter", oneof: "response_type", &filter)
        try visitor.message(6, "document_remove", oneof: "response_type", &documentRemove)
    }
}

/// google.firestore.v1.Target
package struct TargetMessage: WireMessage {
    package struct DocumentsTarget: WireMessage {
        package var documents: [String]

        package init() {
            self.init(documents: [])
        }

        package init(documents: [String] = []) {
            self.documents = documents
        }

        package static let typeName = "google.firestore.v1.Target.DocumentsTarget"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.strings(2, "documents", &documents)
        }
    }

    package struct QueryTarget: WireMessage {
        package var parent: String
        package var structuredQuery: StructuredQueryMessage?

        package init() {
            self.init(parent: "")
        }

        package init(parent: String = "", structuredQuery: StructuredQueryMessage? = nil) {
            self.parent = parent
            self.structuredQuery = structuredQuery
        }

        package static let typeName = "google.firestore.v1.Target.QueryTarget"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "parent", &parent)
            try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        }
    }

    package var query: QueryTarget?
    package var documents: DocumentsTarget?
    package var resumeToken: [UInt8]?
    package var readTime: TimestampMessage?
    package var targetId: Int32
    package var once: Bool
    package var expectedCount: Int32?

    package init() {
        self.init(query: nil)
    }

    package init(
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

    package static let typeName = "google.firestore.v1.Target"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
package struct TargetChangeMessage: WireMessage {
    package struct TargetChangeType: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let noChange = TargetChangeType(rawValue: 0)
        package static let add = TargetChangeType(rawValue: 1)
        package static let remove = TargetChangeType(rawValue: 2)
        package static let current = TargetChangeType(rawValue: 3)
        package static let reset = TargetChangeType(rawValue: 4)

        package static let typeName = "google.firestore.v1.TargetChange.TargetChangeType"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "NO_CHANGE"), (1, "ADD"), (2, "REMOVE"), (3, "CURRENT"), (4, "RESET"),
        ]
    }

    package var targetChangeType: TargetChangeType
    package var targetIds: [Int32]
    package var cause: StatusMessage?
    package var resumeToken: [UInt8]
    package var readTime: TimestampMessage?

    package init() {
        self.init(targetChangeType: TargetChangeType())
    }

    package init(
        targetChangeType: TargetChangeType = TargetChangeType(), targetIds: [Int32] = [], cause: StatusMessage? = nil,
        resumeToken: [UInt8] = [], readTime: TimestampMessage? = nil
    ) {
        self.targetChangeType = targetChangeType
        self.targetIds = targetIds
        self.cause = cause
        self.resumeToken = resumeToken
        self.readTime = readTime
    }

    package static let typeName = "google.firestore.v1.TargetChange"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "target_change_type", &targetChangeType)
        try visitor.int32s(2, "target_ids", &targetIds)
        try visitor.message(3, "cause", &cause)
        try visitor.bytes(4, "resume_token", &resumeToken)
        try visitor.message(6, "read_time", &readTime)
    }
}

/// google.firestore.v1.DocumentChange
package struct DocumentChangeMessage: WireMessage {
    package var document: DocumentMessage?
    package var targetIds: [Int32]
    package var removedTargetIds: [Int32]

    package init() {
        self.init(document: nil)
    }

    package init(document: DocumentMessage? = nil, targetIds: [Int32] = [], removedTargetIds: [Int32] = []) {
        self.document = document
        self.targetIds = targetIds
        self.removedTargetIds = removedTargetIds
    }

    package static let typeName = "google.firestore.v1.DocumentChange"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "document", &document)
        try visitor.int32s(5, "target_ids", &targetIds)
        try visitor.int32s(6, "removed_target_ids", &removedTargetIds)
    }
}

/// google.firestore.v1.DocumentDelete
package struct DocumentDeleteMessage: WireMessage {
    package var document: String
    package var removedTargetIds: [Int32]
    package var readTime: TimestampMessage?

    package init() {
        self.init(document: "")
    }

    package init(document: String = "", removedTargetIds: [Int32] = [], readTime: TimestampMessage? = nil) {
        self.document = document
        self.removedTargetIds = removedTargetIds
        self.readTime = readTime
    }

    package static let typeName = "google.firestore.v1.DocumentDelete"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.message(4, "read_time", &readTime)
        try visitor.int32s(6, "removed_target_ids", &removedTargetIds)
    }
}

/// google.firestore.v1.DocumentRemove
package struct DocumentRemoveMessage: WireMessage {
    package var document: String
    package var removedTargetIds: [Int32]
    package var readTime: TimestampMessage?

    package init() {
        self.init(document: "")
    }

    package init(document: String = "", removedTargetIds: [Int32] = [], readTime: TimestampMessage? = nil) {
        self.document = document
        self.removedTargetIds = removedTargetIds
        self.readTime = readTime
    }

    package static let typeName = "google.firestore.v1.DocumentRemove"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.int32s(2, "removed_target_ids", &removedTargetIds)
        try visitor.message(4, "read_time", &readTime)
    }
}

/// google.firestore.v1.ExistenceFilter
package struct ExistenceFilterMessage: WireMessage {
    package var targetId: Int32
    package var count: Int32
    package var unchangedNames: BloomFilterMessage?

    package init() {
        self.init(targetId: 0)
    }

    package init(targetId: Int32 = 0, count: Int32 = 0, unchangedNames: BloomFilterMessage? = nil) {
        self.targetId = targetId
        self.count = count
        self.unchangedNames = unchangedNames
    }

    package static let typeName = "google.firestore.v1.ExistenceFilter"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int32(1, "target_id", &targetId)
        try visitor.int32(2, "count", &count)
        try visitor.message(3, "unchanged_names", &unchangedNames)
    }
}

/// google.firestore.v1.BloomFilter
package struct BloomFilterMessage: WireMessage {
    package var bits: BitSequenceMessage?
    package var hashCount: Int32

    package init() {
        self.init(bits: nil)
    }

    package init(bits: BitSequenceMessage? = nil, hashCount: Int32 = 0) {
        self.bits = bits
        self.hashCount = hashCount
    }

    package static let typeName = "google.firestore.v1.BloomFilter"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "bits", &bits)
        try visitor.int32(2, "hash_count", &hashCount)
    }
}

/// google.firestore.v1.BitSequence
package struct BitSequenceMessage: WireMessage {
    package var bitmap: [UInt8]
    package var padding: Int32

    package init() {
        self.init(bitmap: [])
    }

    package init(bitmap: [UInt8] = [], padding: Int32 = 0) {
        self.bitmap = bitmap
        self.padding = padding
    }

    package static let typeName = "google.firestore.v1.BitSequence"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "bitmap", &bitmap)
        try visitor.int32(2, "padding", &padding)
    }
}
