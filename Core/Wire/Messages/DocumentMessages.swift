import HearthModel

/// google.firestore.v1.Document
package struct DocumentMessage: WireMessage {
    package var name: String
    package var fields: MapValue
    package var createTime: TimestampMessage?
    package var updateTime: TimestampMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", fields: MapValue = MapValue(), createTime: TimestampMessage? = nil,
        updateTime: TimestampMessage? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }

    package static let typeName = "google.firestore.v1.Document"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.fields(2, "fields", &fields)
        try visitor.message(3, "create_time", &createTime)
        try visitor.message(4, "update_time", &updateTime)
    }

    package mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
        // One builder for the whole message: in whatever order the entries and other fields arrive, they are sorted
        // once.
        var builder = MapBuilder(fields)
        fields = MapValue()
        while try decoder.readFields(2, into: &builder) {
            try visit(&decoder)
            try decoder.endField()
        }
        fields = builder.take()
    }
}

/// google.firestore.v1.DocumentMask
package struct DocumentMaskMessage: WireMessage {
    package var fieldPaths: [String]

    package init() {
        self.init(fieldPaths: [])
    }

    package init(fieldPaths: [String] = []) {
        self.fieldPaths = fieldPaths
    }

    package static let typeName = "google.firestore.v1.DocumentMask"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "field_paths", &fieldPaths)
    }
}

/// google.firestore.v1.Precondition
package struct PreconditionMessage: WireMessage {
    package var exists: Bool?
    package var updateTime: TimestampMessage?

    package init() {
        self.init(exists: nil)
    }

    package init(exists: Bool? = nil, updateTime: TimestampMessage? = nil) {
        self.exists = exists
        self.updateTime = updateTime
    }

    package static let typeName = "google.firestore.v1.Precondition"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "exists", oneof: "condition_type", &exists)
        try visitor.message(2, "update_time", oneof: "condition_type", &updateTime)
    }
}

/// google.firestore.v1.GetDocumentRequest
package struct GetDocumentRequest: WireMessage {
    package var name: String
    package var mask: DocumentMaskMessage?
    package var transaction: [UInt8]?
    package var readTime: TimestampMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", mask: DocumentMaskMessage? = nil, transaction: [UInt8]? = nil,
        readTime: TimestampMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.name = name
        self.mask = mask
        self.transaction = transaction
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.GetDocumentRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "mask", &mask)
        try visitor.bytes(3, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(5, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(10, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListDocumentsRequest
package struct ListDocumentsRequest: WireMessage {
    package var parent: String
    package var collectionId: String
    package var pageSize: Int32
    package var pageToken: String
    package var orderBy: String
    package var mask: DocumentMaskMessage?
    package var transaction: [UInt8]?
    package var readTime: TimestampMessage?
    package var showMissing: Bool
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", collectionId: String = "", pageSize: Int32 = 0, pageToken: String = "",
        orderBy: String = "", mask: DocumentMaskMessage? = nil, transaction: [UInt8]? = nil,
        readTime: TimestampMessage? = nil, showMissing: Bool = false, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.collectionId = collectionId
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.orderBy = orderBy
        self.mask = mask
        self.transaction = transaction
        self.readTime = readTime
        self.showMissing = showMissing
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.ListDocumentsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "collection_id", &collectionId)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
        try visitor.string(6, "order_by", &orderBy)
        try visitor.message(7, "mask", &mask)
        try visitor.bytes(8, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(10, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.bool(12, "show_missing", &showMissing)
        try visitor.message(13, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListDocumentsResponse
package struct ListDocumentsResponse: WireMessage {
    package var documents: [DocumentMessage]
    package var nextPageToken: String

    package init() {
        self.init(documents: [])
    }

    package init(documents: [DocumentMessage] = [], nextPageToken: String = "") {
        self.documents = documents
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.firestore.v1.ListDocumentsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "documents", &documents)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.firestore.v1.CreateDocumentRequest
package struct CreateDocumentRequest: WireMessage {
    package var parent: String
    package var collectionId: String
    package var documentId: String
    package var document: DocumentMessage?
    package var mask: DocumentMaskMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", collectionId: String = "", documentId: String = "", document: DocumentMessage? = nil,
        mask: DocumentMaskMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.collectionId = collectionId
        self.documentId = documentId
        self.document = document
        self.mask = mask
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.CreateDocumentRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "collection_id", &collectionId)
        try visitor.string(3, "document_id", &documentId)
        try visitor.message(4, "document", &document)
        try visitor.message(5, "mask", &mask)
        try visitor.message(6, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.UpdateDocumentRequest
package struct UpdateDocumentRequest: WireMessage {
    package var document: DocumentMessage?
    package var updateMask: DocumentMaskMessage?
    package var mask: DocumentMaskMessage?
    package var currentDocument: PreconditionMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(document: nil)
    }

    package init(
        document: DocumentMessage? = nil, updateMask: DocumentMaskMessage? = nil, mask: DocumentMaskMessage? = nil,
        currentDocument: PreconditionMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.document = document
        self.updateMask = updateMask
        self.mask = mask
        self.currentDocument = currentDocument
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.UpdateDocumentRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "document", &document)
        try visitor.message(2, "update_mask", &updateMask)
        try visitor.message(3, "mask", &mask)
        try visitor.message(4, "current_document", &currentDocument)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.DeleteDocumentRequest
package struct DeleteDocumentRequest: WireMessage {
    package var name: String
    package var currentDocument: PreconditionMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", currentDocument: PreconditionMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.name = name
        self.currentDocument = currentDocument
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.DeleteDocumentRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "current_document", &currentDocument)
        try visitor.message(3, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BatchGetDocumentsRequest
package struct BatchGetDocumentsRequest: WireMessage {
    package var database: String
    package var documents: [String]
    package var mask: DocumentMaskMessage?
    package var transaction: [UInt8]?
    package var newTransaction: TransactionOptionsMessage?
    package var readTime: TimestampMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", documents: [String] = [], mask: DocumentMaskMessage? = nil, transaction: [UInt8]? = nil,
        newTransaction: TransactionOptionsMessage? = nil, readTime: TimestampMessage? = nil,
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.documents = documents
        self.mask = mask
        self.transaction = transaction
        self.newTransaction = newTransaction
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.BatchGetDocumentsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.strings(2, "documents", &documents)
        try visitor.message(3, "mask", &mask)
        try visitor.bytes(4, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(5, "new_transaction", oneof: "consistency_selector", &newTransaction)
        try visitor.message(7, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(8, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BatchGetDocumentsResponse
package struct BatchGetDocumentsResponse: WireMessage {
    package var found: DocumentMessage?
    package var missing: String?
    package var transaction: [UInt8]
    package var readTime: TimestampMessage?

    package init() {
        self.init(found: nil)
    }

    package init(
        found: DocumentMessage? = nil, missing: String? = nil, transaction: [UInt8] = [],
        readTime: TimestampMessage? = nil
    ) {
        self.found = found
        self.missing = missing
        self.transaction = transaction
        self.readTime = readTime
    }

    package static let typeName = "google.firestore.v1.BatchGetDocumentsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "found", oneof: "result", &found)
        try visitor.string(2, "missing", oneof: "result", &missing)
        try visitor.bytes(3, "transaction", &transaction)
        try visitor.message(4, "read_time", &readTime)
    }
}

/// google.firestore.v1.ListCollectionIdsRequest
package struct ListCollectionIdsRequest: WireMessage {
    package var parent: String
    package var pageSize: Int32
    package var pageToken: String
    package var readTime: TimestampMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", pageSize: Int32 = 0, pageToken: String = "", readTime: TimestampMessage? = nil,
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.ListCollectionIdsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.int32(2, "page_size", &pageSize)
        try visitor.string(3, "page_token", &pageToken)
        try visitor.message(4, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListCollectionIdsResponse
package struct ListCollectionIdsResponse: WireMessage {
    package var collectionIds: [String]
    package var nextPageToken: String

    package init() {
        self.init(collectionIds: [])
    }

    package init(collectionIds: [String] = [], nextPageToken: String = "") {
        self.collectionIds = collectionIds
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.firestore.v1.ListCollectionIdsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "collection_ids", &collectionIds)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}
