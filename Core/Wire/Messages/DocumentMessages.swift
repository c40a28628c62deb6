import HearthModel

/// google.firestore.v1.Document
public struct DocumentMessage: WireMessage {
    public var name: String
    public var fields: MapValue
    public var createTime: TimestampMessage?
    public var updateTime: TimestampMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", fields: MapValue = MapValue(), createTime: TimestampMessage? = nil,
        updateTime: TimestampMessage? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }

    public static let typeName = "google.firestore.v1.Document"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.fields(2, "fields", &fields)
        try visitor.message(3, "create_time", &createTime)
        try visitor.message(4, "update_time", &updateTime)
    }

    public mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
        // One builder for the whole message: however a sender mixes entries with other fields, they are sorted once.
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
public struct DocumentMaskMessage: WireMessage {
    public var fieldPaths: [String]

    public init() {
        self.init(fieldPaths: [])
    }

    public init(fieldPaths: [String] = []) {
        self.fieldPaths = fieldPaths
    }

    public static let typeName = "google.firestore.v1.DocumentMask"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "field_paths", &fieldPaths)
    }
}

/// google.firestore.v1.Precondition
public struct PreconditionMessage: WireMessage {
    public var exists: Bool?
    public var updateTime: TimestampMessage?

    public init() {
        self.init(exists: nil)
    }

    public init(exists: Bool? = nil, updateTime: TimestampMessage? = nil) {
        self.exists = exists
        self.updateTime = updateTime
    }

    public static let typeName = "google.firestore.v1.Precondition"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "exists", oneof: "condition_type", &exists)
        try visitor.message(2, "update_time", oneof: "condition_type", &updateTime)
    }
}

/// google.firestore.v1.GetDocumentRequest
public struct GetDocumentRequest: WireMessage {
    public var name: String
    public var mask: DocumentMaskMessage?
    public var transaction: [UInt8]?
    public var readTime: TimestampMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", mask: DocumentMaskMessage? = nil, transaction: [UInt8]? = nil,
        readTime: TimestampMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.name = name
        self.mask = mask
        self.transaction = transaction
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.GetDocumentRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "mask", &mask)
        try visitor.bytes(3, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(5, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(10, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListDocumentsRequest
public struct ListDocumentsRequest: WireMessage {
    public var parent: String
    public var collectionId: String
    public var pageSize: Int32
    public var pageToken: String
    public var orderBy: String
    public var mask: DocumentMaskMessage?
    public var transaction: [UInt8]?
    public var readTime: TimestampMessage?
    public var showMissing: Bool
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(parent: "")
    }

    public init(
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

    public static let typeName = "google.firestore.v1.ListDocumentsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct ListDocumentsResponse: WireMessage {
    public var documents: [DocumentMessage]
    public var nextPageToken: String

    public init() {
        self.init(documents: [])
    }

    public init(documents: [DocumentMessage] = [], nextPageToken: String = "") {
        self.documents = documents
        self.nextPageToken = nextPageToken
    }

    public static let typeName = "google.firestore.v1.ListDocumentsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "documents", &documents)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.firestore.v1.CreateDocumentRequest
public struct CreateDocumentRequest: WireMessage {
    public var parent: String
    public var collectionId: String
    public var documentId: String
    public var document: DocumentMessage?
    public var mask: DocumentMaskMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(parent: "")
    }

    public init(
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

    public static let typeName = "google.firestore.v1.CreateDocumentRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "collection_id", &collectionId)
        try visitor.string(3, "document_id", &documentId)
        try visitor.message(4, "document", &document)
        try visitor.message(5, "mask", &mask)
        try visitor.message(6, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.UpdateDocumentRequest
public struct UpdateDocumentRequest: WireMessage {
    public var document: DocumentMessage?
    public var updateMask: DocumentMaskMessage?
    public var mask: DocumentMaskMessage?
    public var currentDocument: PreconditionMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(document: nil)
    }

    public init(
        document: DocumentMessage? = nil, updateMask: DocumentMaskMessage? = nil, mask: DocumentMaskMessage? = nil,
        currentDocument: PreconditionMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.document = document
        self.updateMask = updateMask
        self.mask = mask
        self.currentDocument = currentDocument
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.UpdateDocumentRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "document", &document)
        try visitor.message(2, "update_mask", &updateMask)
        try visitor.message(3, "mask", &mask)
        try visitor.message(4, "current_document", &currentDocument)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.DeleteDocumentRequest
public struct DeleteDocumentRequest: WireMessage {
    public var name: String
    public var currentDocument: PreconditionMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", currentDocument: PreconditionMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.name = name
        self.currentDocument = currentDocument
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.DeleteDocumentRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "current_document", &currentDocument)
        try visitor.message(3, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BatchGetDocumentsRequest
public struct BatchGetDocumentsRequest: WireMessage {
    public var database: String
    public var documents: [String]
    public var mask: DocumentMaskMessage?
    public var transaction: [UInt8]?
    public var newTransaction: TransactionOptionsMessage?
    public var readTime: TimestampMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
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

    public static let typeName = "google.firestore.v1.BatchGetDocumentsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct BatchGetDocumentsResponse: WireMessage {
    public var found: DocumentMessage?
    public var missing: String?
    public var transaction: [UInt8]
    public var readTime: TimestampMessage?

    public init() {
        self.init(found: nil)
    }

    public init(
        found: DocumentMessage? = nil, missing: String? = nil, transaction: [UInt8] = [],
        readTime: TimestampMessage? = nil
    ) {
        self.found = found
        self.missing = missing
        self.transaction = transaction
        self.readTime = readTime
    }

    public static let typeName = "google.firestore.v1.BatchGetDocumentsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "found", oneof: "result", &found)
        try visitor.string(2, "missing", oneof: "result", &missing)
        try visitor.bytes(3, "transaction", &transaction)
        try visitor.message(4, "read_time", &readTime)
    }
}

/// google.firestore.v1.ListCollectionIdsRequest
public struct ListCollectionIdsRequest: WireMessage {
    public var parent: String
    public var pageSize: Int32
    public var pageToken: String
    public var readTime: TimestampMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(parent: "")
    }

    public init(
        parent: String = "", pageSize: Int32 = 0, pageToken: String = "", readTime: TimestampMessage? = nil,
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.ListCollectionIdsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.int32(2, "page_size", &pageSize)
        try visitor.string(3, "page_token", &pageToken)
        try visitor.message(4, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(5, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ListCollectionIdsResponse
public struct ListCollectionIdsResponse: WireMessage {
    public var collectionIds: [String]
    public var nextPageToken: String

    public init() {
        self.init(collectionIds: [])
    }

    public init(collectionIds: [String] = [], nextPageToken: String = "") {
        self.collectionIds = collectionIds
        self.nextPageToken = nextPageToken
    }

    public static let typeName = "google.firestore.v1.ListCollectionIdsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "collection_ids", &collectionIds)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}
