import HearthModel

/// google.firestore.admin.v1.ListDatabasesRequest
package struct ListDatabasesRequest: WireMessage {
    package var parent: String
    package var showDeleted: Bool

    package init() {
        self.init(parent: "")
    }

    package init(parent: String = "", showDeleted: Bool = false) {
        self.parent = parent
        self.showDeleted = showDeleted
    }

    package static let typeName = "google.firestore.admin.v1.ListDatabasesRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.bool(4, "show_deleted", &showDeleted)
    }
}

/// google.firestore.admin.v1.ListDatabasesResponse
package struct ListDatabasesResponse: WireMessage {
    package var databases: [DatabaseMessage]
    package var unreachable: [String]

    package init() {
        self.init(databases: [])
    }

    package init(databases: [DatabaseMessage] = [], unreachable: [String] = []) {
        self.databases = databases
        self.unreachable = unreachable
    }

    package static let typeName = "google.firestore.admin.v1.ListDatabasesResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "databases", &databases)
        try visitor.strings(3, "unreachable", &unreachable)
    }
}

/// google.firestore.admin.v1.CreateDatabaseRequest
package struct CreateDatabaseRequest: WireMessage {
    package var parent: String
    package var database: DatabaseMessage?
    package var databaseId: String

    package init() {
        self.init(parent: "")
    }

    package init(parent: String = "", database: DatabaseMessage? = nil, databaseId: String = "") {
        self.parent = parent
        self.database = database
        self.databaseId = databaseId
    }

    package static let typeName = "google.firestore.admin.v1.CreateDatabaseRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "database", &database)
        try visitor.string(3, "database_id", &databaseId)
    }
}

/// google.firestore.admin.v1.CreateDatabaseMetadata
package struct CreateDatabaseMetadata: WireMessage {
    package init() {}

    package static let typeName = "google.firestore.admin.v1.CreateDatabaseMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.GetDatabaseRequest
package struct GetDatabaseRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.firestore.admin.v1.GetDatabaseRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.UpdateDatabaseRequest
package struct UpdateDatabaseRequest: WireMessage {
    package var database: DatabaseMessage?
    package var updateMask: [String]?

    package init() {
        self.init(database: nil)
    }

    package init(database: DatabaseMessage? = nil, updateMask: [String]? = nil) {
        self.database = database
        self.updateMask = updateMask
    }

    package static let typeName = "google.firestore.admin.v1.UpdateDatabaseRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "database", &database)
        try visitor.fieldMask(2, "update_mask", &updateMask)
    }
}

/// google.firestore.admin.v1.UpdateDatabaseMetadata
package struct UpdateDatabaseMetadata: WireMessage {
    package init() {}

    package static let typeName = "google.firestore.admin.v1.UpdateDatabaseMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.DeleteDatabaseRequest
package struct DeleteDatabaseRequest: WireMessage {
    package var name: String
    package var etag: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", etag: String = "") {
        self.name = name
        self.etag = etag
    }

    package static let typeName = "google.firestore.admin.v1.DeleteDatabaseRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.string(3, "etag", &etag)
    }
}

/// google.firestore.admin.v1.DeleteDatabaseMetadata
package struct DeleteDatabaseMetadata: WireMessage {
    package init() {}

    package static let typeName = "google.firestore.admin.v1.DeleteDatabaseMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// google.firestore.admin.v1.ExportDocumentsRequest
package struct ExportDocumentsRequest: WireMessage {
    package var name: String
    package var collectionIds: [String]
    package var outputUriPrefix: String
    package var namespaceIds: [String]
    package var snapshotTime: TimestampMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", collectionIds: [String] = [], outputUriPrefix: String = "", namespaceIds: [String] = [],
        snapshotTime: TimestampMessage? = nil
    ) {
        self.name = name
        self.collectionIds = collectionIds
        self.outputUriPrefix = outputUriPrefix
        self.namespaceIds = namespaceIds
        self.snapshotTime = snapshotTime
    }

    package static let typeName = "google.firestore.admin.v1.ExportDocumentsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.string(3, "output_uri_prefix", &outputUriPrefix)
        try visitor.strings(4, "namespace_ids", &namespaceIds)
        try visitor.message(5, "snapshot_time", &snapshotTime)
    }
}

/// google.firestore.admin.v1.ExportDocumentsResponse
package struct ExportDocumentsResponse: WireMessage {
    package var outputUriPrefix: String

    package init() {
        self.init(outputUriPrefix: "")
    }

    package init(outputUriPrefix: String = "") {
        self.outputUriPrefix = outputUriPrefix
    }

    package static let typeName = "google.firestore.admin.v1.ExportDocumentsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "output_uri_prefix", &outputUriPrefix)
    }
}

/// google.firestore.admin.v1.ImportDocumentsRequest
package struct ImportDocumentsRequest: WireMessage {
    package var name: String
    package var collectionIds: [String]
    package var inputUriPrefix: String
    package var namespaceIds: [String]

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", collectionIds: [String] = [], inputUriPrefix: String = "", namespaceIds: [String] = []
    ) {
        self.name = name
        self.collectionIds = collectionIds
        self.inputUriPrefix = inputUriPrefix
        self.namespaceIds = namespaceIds
    }

    package static let typeName = "google.firestore.admin.v1.ImportDocumentsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.string(3, "input_uri_prefix", &inputUriPrefix)
        try visitor.strings(4, "namespace_ids", &namespaceIds)
    }
}

/// google.firestore.admin.v1.BulkDeleteDocumentsRequest
package struct BulkDeleteDocumentsRequest: WireMessage {
    package var name: String
    package var collectionIds: [String]
    package var namespaceIds: [String]

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", collectionIds: [String] = [], namespaceIds: [String] = []) {
        self.name = name
        self.collectionIds = collectionIds
        self.namespaceIds = namespaceIds
    }

    package static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.strings(2, "collection_ids", &collectionIds)
        try visitor.strings(3, "namespace_ids", &namespaceIds)
    }
}

/// google.firestore.admin.v1.BulkDeleteDocumentsResponse
package struct BulkDeleteDocumentsResponse: WireMessage {
    package init() {}

    package static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
