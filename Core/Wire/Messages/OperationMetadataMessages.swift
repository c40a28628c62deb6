import HearthModel

package struct OperationState: WireEnum {
    package var rawValue: Int32

    package init(rawValue: Int32 = 0) {
        self.rawValue = rawValue
    }

    package static let unspecified = OperationState(rawValue: 0)
    package static let initializing = OperationState(rawValue: 1)
    package static let processing = OperationState(rawValue: 2)
    package static let cancelling = OperationState(rawValue: 3)
    package static let finalizing = OperationState(rawValue: 4)
    package static let successful = OperationState(rawValue: 5)
    package static let failed = OperationState(rawValue: 6)
    package static let cancelled = OperationState(rawValue: 7)

    package static let typeName = "google.firestore.admin.v1.OperationState"
    package static let names: [(number: Int32, name: StaticString)] = [
        (0, "OPERATION_STATE_UNSPECIFIED"), (1, "INITIALIZING"), (2, "PROCESSING"), (3, "CANCELLING"),
        (4, "FINALIZING"), (5, "SUCCESSFUL"), (6, "FAILED"), (7, "CANCELLED"),
    ]
}

/// google.firestore.admin.v1.Progress
package struct ProgressMessage: WireMessage {
    package var estimatedWork: Int64
    package var completedWork: Int64

    package init() {
        self.init(estimatedWork: 0)
    }

    package init(estimatedWork: Int64 = 0, completedWork: Int64 = 0) {
        self.estimatedWork = estimatedWork
        self.completedWork = completedWork
    }

    package static let typeName = "google.firestore.admin.v1.Progress"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "estimated_work", &estimatedWork)
        try visitor.int64(2, "completed_work", &completedWork)
    }
}

/// google.firestore.admin.v1.IndexOperationMetadata
package struct IndexOperationMetadata: WireMessage {
    package var startTime: TimestampMessage?
    package var endTime: TimestampMessage?
    package var index: String
    package var state: OperationState
    package var progressDocuments: ProgressMessage?
    package var progressBytes: ProgressMessage?

    package init() {
        self.init(startTime: nil)
    }

    package init(
        startTime: TimestampMessage? = nil, endTime: TimestampMessage? = nil, index: String = "",
        state: OperationState = OperationState(), progressDocuments: ProgressMessage? = nil,
        progressBytes: ProgressMessage? = nil
    ) {
        self.startTime = startTime
        self.endTime = endTime
        self.index = index
        self.state = state
        self.progressDocuments = progressDocuments
        self.progressBytes = progressBytes
    }

    package static let typeName = "google.firestore.admin.v1.IndexOperationMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.string(3, "index", &index)
        try visitor.enumeration(4, "state", &state)
        try visitor.message(5, "progress_documents", &progressDocuments)
        try visitor.message(6, "progress_bytes", &progressBytes)
    }
}

/// google.firestore.admin.v1.FieldOperationMetadata
package struct FieldOperationMetadata: WireMessage {
    package struct IndexConfigDelta: WireMessage {
        package struct ChangeType: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = ChangeType(rawValue: 0)
            package static let add = ChangeType(rawValue: 1)
            package static let remove = ChangeType(rawValue: 2)

            package static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.IndexConfigDelta.ChangeType"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "CHANGE_TYPE_UNSPECIFIED"), (1, "ADD"), (2, "REMOVE"),
            ]
        }

        package var changeType: ChangeType
        package var index: IndexMessage?

        package init() {
            self.init(changeType: ChangeType())
        }

        package init(changeType: ChangeType = ChangeType(), index: IndexMessage? = nil) {
            self.changeType = changeType
            self.index = index
        }

        package static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.IndexConfigDelta"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "change_type", &changeType)
            try visitor.message(2, "index", &index)
        }
    }

    package struct TtlConfigDelta: WireMessage {
        package struct ChangeType: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = ChangeType(rawValue: 0)
            package static let add = ChangeType(rawValue: 1)
            package static let remove = ChangeType(rawValue: 2)

            package static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.TtlConfigDelta.ChangeType"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "CHANGE_TYPE_UNSPECIFIED"), (1, "ADD"), (2, "REMOVE"),
            ]
        }

        package var changeType: ChangeType
        package var expirationOffset: DurationMessage?

        package init() {
            self.init(changeType: ChangeType())
        }

        package init(changeType: ChangeType = ChangeType(), expirationOffset: DurationMessage? = nil) {
            self.changeType = changeType
            self.expirationOffset = expirationOffset
        }

        package static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.TtlConfigDelta"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "change_type", &changeType)
            try visitor.message(3, "expiration_offset", &expirationOffset)
        }
    }

    package var startTime: TimestampMessage?
    package var endTime: TimestampMessage?
    package var field: String
    package var indexConfigDeltas: [IndexConfigDelta]
    package var state: OperationState
    package var progressDocuments: ProgressMessage?
    package var progressBytes: ProgressMessage?
    package var ttlConfigDelta: TtlConfigDelta?

    package init() {
        self.init(startTime: nil)
    }

    package init(
        startTime: TimestampMessage? = nil, endTime: TimestampMessage? = nil, field: String = "",
        indexConfigDeltas: [IndexConfigDelta] = [], state: OperationState = OperationState(),
        progressDocuments: ProgressMessage? = nil, progressBytes: ProgressMessage? = nil,
        ttlConfigDelta: TtlConfigDelta? = nil
    ) {
        self.startTime = startTime
        self.endTime = endTime
        self.field = field
        self.indexConfigDeltas = indexConfigDeltas
        self.state = state
        self.progressDocuments = progressDocuments
        self.progressBytes = progressBytes
        self.ttlConfigDelta = ttlConfigDelta
    }

    package static let typeName = "google.firestore.admin.v1.FieldOperationMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.string(3, "field", &field)
        try visitor.messages(4, "index_config_deltas", &indexConfigDeltas)
        try visitor.enumeration(5, "state", &state)
        try visitor.message(6, "progress_documents", &progressDocuments)
        try visitor.message(7, "progress_bytes", &progressBytes)
        try visitor.message(8, "ttl_config_delta", &ttlConfigDelta)
    }
}

/// google.firestore.admin.v1.ExportDocumentsMetadata
package struct ExportDocumentsMetadata: WireMessage {
    package var startTime: TimestampMessage?
    package var endTime: TimestampMessage?
    package var operationState: OperationState
    package var progressDocuments: ProgressMessage?
    package var progressBytes: ProgressMessage?
    package var collectionIds: [String]
    package var outputUriPrefix: String
    package var namespaceIds: [String]
    package var snapshotTime: TimestampMessage?

    package init() {
        self.init(startTime: nil)
    }

    package init(
        startTime: TimestampMessage? = nil, endTime: TimestampMessage? = nil,
        operationState: OperationState = OperationState(), progressDocuments: ProgressMessage? = nil,
        progressBytes: ProgressMessage? = nil, collectionIds: [String] = [], outputUriPrefix: String = "",
        namespaceIds: [String] = [], snapshotTime: TimestampMessage? = nil
    ) {
        self.startTime = startTime
        self.endTime = endTime
        self.operationState = operationState
        self.progressDocuments = progressDocuments
        self.progressBytes = progressBytes
        self.collectionIds = collectionIds
        self.outputUriPrefix = outputUriPrefix
        self.namespaceIds = namespaceIds
        self.snapshotTime = snapshotTime
    }

    package static let typeName = "google.firestore.admin.v1.ExportDocumentsMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.enumeration(3, "operation_state", &operationState)
        try visitor.message(4, "progress_documents", &progressDocuments)
        try visitor.message(5, "progress_bytes", &progressBytes)
        try visitor.strings(6, "collection_ids", &collectionIds)
        try visitor.string(7, "output_uri_prefix", &outputUriPrefix)
        try visitor.strings(8, "namespace_ids", &namespaceIds)
        try visitor.message(9, "snapshot_time", &snapshotTime)
    }
}

/// google.firestore.admin.v1.ImportDocumentsMetadata
package struct ImportDocumentsMetadata: WireMessage {
    package var startTime: TimestampMessage?
    package var endTime: TimestampMessage?
    package var operationState: OperationState
    package var progressDocuments: ProgressMessage?
    package var progressBytes: ProgressMessage?
    package var collectionIds: [String]
    package var inputUriPrefix: String
    package var namespaceIds: [String]

    package init() {
        self.init(startTime: nil)
    }

    package init(
        startTime: TimestampMessage? = nil, endTime: TimestampMessage? = nil,
        operationState: OperationState = OperationState(), progressDocuments: ProgressMessage? = nil,
        progressBytes: ProgressMessage? = nil, collectionIds: [String] = [], inputUriPrefix: String = "",
        namespaceIds: [String] = []
    ) {
        self.startTime = startTime
        self.endTime = endTime
        self.operationState = operationState
        self.progressDocuments = progressDocuments
        self.progressBytes = progressBytes
        self.collectionIds = collectionIds
        self.inputUriPrefix = inputUriPrefix
        self.namespaceIds = namespaceIds
    }

    package static let typeName = "google.firestore.admin.v1.ImportDocumentsMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.enumeration(3, "operation_state", &operationState)
        try visitor.message(4, "progress_documents", &progressDocuments)
        try visitor.message(5, "progress_bytes", &progressBytes)
        try visitor.strings(6, "collection_ids", &collectionIds)
        try visitor.string(7, "input_uri_prefix", &inputUriPrefix)
        try visitor.strings(8, "namespace_ids", &namespaceIds)
    }
}

/// google.firestore.admin.v1.BulkDeleteDocumentsMetadata
package struct BulkDeleteDocumentsMetadata: WireMessage {
    package var startTime: TimestampMessage?
    package var endTime: TimestampMessage?
    package var operationState: OperationState
    package var progressDocuments: ProgressMessage?
    package var progressBytes: ProgressMessage?
    package var collectionIds: [String]
    package var namespaceIds: [String]
    package var snapshotTime: TimestampMessage?

    package init() {
        self.init(startTime: nil)
    }

    package init(
        startTime: TimestampMessage? = nil, endTime: TimestampMessage? = nil,
        operationState: OperationState = OperationState(), progressDocuments: ProgressMessage? = nil,
        progressBytes: ProgressMessage? = nil, collectionIds: [String] = [], namespaceIds: [String] = [],
        snapshotTime: TimestampMessage? = nil
    ) {
        self.startTime = startTime
        self.endTime = endTime
        self.operationState = operationState
        self.progressDocuments = progressDocuments
        self.progressBytes = progressBytes
        self.collectionIds = collectionIds
        self.namespaceIds = namespaceIds
        self.snapshotTime = snapshotTime
    }

    package static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.enumeration(3, "operation_state", &operationState)
        try visitor.message(4, "progress_documents", &progressDocuments)
        try visitor.message(5, "progress_bytes", &progressBytes)
        try visitor.strings(6, "collection_ids", &collectionIds)
        try visitor.strings(7, "namespace_ids", &namespaceIds)
        try visitor.message(8, "snapshot_time", &snapshotTime)
    }
}
