import HearthModel

/// google.firestore.admin.v1.ListDatabasesRequest
public struct ListDatabasesRequest: WireMessage {
    public var parent: String
    public var showDeleted: Bool

    public init() {
        self.init(parent: "")
    }

    public init(parent: String = "", showDeleted: Bool = false) {
        self.parent = parent
        self.showDeleted = showDeleted
    }

    public static let typeName = "google.firestore.admin.v1.ListDatabasesRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.bool(4, "show_deleted", &showDeleted)
    }
}

/// google.firestore.admin.v1.ListDatabasesResponse
public struct ListDatabasesResponse: WireMessage {
    public var databases: [DatabaseMessage]
    public var unreachable: [String]

    public init() {
        self.init(databases: [])
    }

    public init(databases: [DatabaseMessage] = [], unreachable: [String] = []) {
        self.databases = databases
        self.unreachable = unreachable
    }

    public static let typeName = "google.firestore.admin.v1.ListDatabasesResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "databases", &databases)
        try visitor.strings(3, "unreachable", &unreachable)
    }
}

/// google.firestore.admin.v1.CreateDatabaseRequest
public struct CreateDatabaseRequest: WireMessage {
    public var parent: String
    public var database: DatabaseMessage?
    public var databaseId: String

    public init() {
        self.init(parent: "")
    }

    public init(parent: String = "", database: DatabaseMessage? = nil, databaseId: String = "") {
        self.parent = parent
        self.database = database
        self.databaseId = databaseId
    }

    public static let typeName = "google.firestore.admin.v1.CreateDatabaseRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "database", &database)
        try visitor.string(3, "database_id", &databaseId)
    }
}

/// google.firestore.admin.v1.CreateDatabaseMetadata
public struct CreateDatabaseMetadata: WireMessage {
    public init() {}

    public static let typeName = "google.firestore.admin.v1.CreateDatabaseMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.GetDatabaseRequest
public struct GetDatabaseRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.firestore.admin.v1.GetDatabaseRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.UpdateDatabaseRequest
public struct UpdateDatabaseRequest: WireMessage {
    public var database: DatabaseMessage?
    public var updateMask: [String]?

    public init() {
        self.init(database: nil)
    }

    public init(database: DatabaseMessage? = nil, updateMask: [String]? = nil) {
        self.database = database
        self.updateMask = updateMask
    }

    public static let typeName = "google.firestore.admin.v1.UpdateDatabaseRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "database", &database)
        try visitor.fieldMask(2, "update_mask", &updateMask)
    }
}

/// google.firestore.admin.v1.UpdateDatabaseMetadata
public struct UpdateDatabaseMetadata: WireMessage {
    public init() {}

    public static let typeName = "google.firestore.admin.v1.UpdateDatabaseMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.DeleteDatabaseRequest
public struct DeleteDatabaseRequest: WireMessage {
    public var name: String
    public var etag: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", etag: String = "") {
        self.name = name
        self.etag = etag
    }

    public static let typeName = "google.firestore.admin.v1.DeleteDatabaseRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.string(3, "etag", &etag)
    }
}

/// google.firestore.admin.v1.DeleteDatabaseMetadata
public struct DeleteDatabaseMetadata: WireMessage {
    public init() {}

    public static let typeName = "google.firestore.admin.v1.DeleteDatabaseMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.ExportDocumentsRequest
public struct ExportDocumentsRequest: WireMessage {
    public var name: String
    public var collectionIds: [String]
    public var outputUriPrefix: String
    public var namespaceIds: [String]
    public var snapshotTime: TimestampMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", collectionIds: [String] = [], outputUriPrefix: String = "", namespaceIds: [String] = [],
        snapshotTime: TimestampMessage? = nil
    ) {
        self.name = name
        self.collectionIds = collectionIds
        self.outputUriPrefix = outputUriPrefix
        self.namespaceIds = namespaceIds
        self.snapshotTime = snapshotTime
    }

    public static let typeName = "google.firestore.admin.v1.ExportDocumentsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.string(3, "output_uri_prefix", &outputUriPrefix)
        try visitor.strings(4, "namespace_ids", &namespaceIds)
        try visitor.message(5, "snapshot_time", &snapshotTime)
    }
}

/// google.firestore.admin.v1.ExportDocumentsResponse
public struct ExportDocumentsResponse: WireMessage {
    public var outputUriPrefix: String

    public init() {
        self.init(outputUriPrefix: "")
    }

    public init(outputUriPrefix: String = "") {
        self.outputUriPrefix = outputUriPrefix
    }

    public static let typeName = "google.firestore.admin.v1.ExportDocumentsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "output_uri_prefix", &outputUriPrefix)
    }
}

/// google.firestore.admin.v1.ImportDocumentsRequest
public struct ImportDocumentsRequest: WireMessage {
    public var name: String
    public var collectionIds: [String]
    public var inputUriPrefix: String
    public var namespaceIds: [String]

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", collectionIds: [String] = [], inputUriPrefix: String = "", namespaceIds: [String] = []
    ) {
        self.name = name
        self.collectionIds = collectionIds
        self.inputUriPrefix = inputUriPrefix
        self.namespaceIds = namespaceIds
    }

    public static let typeName = "google.firestore.admin.v1.ImportDocumentsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.string(3, "input_uri_prefix", &inputUriPrefix)
        try visitor.strings(4, "namespace_ids", &namespaceIds)
    }
}

/// google.firestore.admin.v1.BulkDeleteDocumentsRequest
public struct BulkDeleteDocumentsRequest: WireMessage {
    public var name: String
    public var collectionIds: [String]
    public var namespaceIds: [String]

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", collectionIds: [String] = [], namespaceIds: [String] = []) {
        self.name = name
        self.collectionIds = collectionIds
        self.namespaceIds = namespaceIds
    }

    public static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.strings(3, "namespace_ids", &namespaceIds)
    }
}

/// google.firestore.admin.v1.BulkDeleteDocumentsResponse
public struct BulkDeleteDocumentsResponse: WireMessage {
    public init() {}

    public static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
