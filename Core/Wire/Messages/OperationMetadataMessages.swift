import HearthModel

public struct OperationState: WireEnum {
    public var rawValue: Int32

    public init(rawValue: Int32 = 0) {
        self.rawValue = rawValue
    }

    public static let unspecified = OperationState(rawValue: 0)
    public static let initializing = OperationState(rawValue: 1)
    public static let processing = OperationState(rawValue: 2)
    public static let cancelling = OperationState(rawValue: 3)
    public static let finalizing = OperationState(rawValue: 4)
    public static let successful = OperationState(rawValue: 5)
    public static let failed = OperationState(rawValue: 6)
    public static let cancelled = OperationState(rawValue: 7)

    public static let typeName = "google.firestore.admin.v1.OperationState"
    public static let names: [(number: Int32, name: StaticString)] = [
        (0, "OPERATION_STATE_UNSPECIFIED"), (1, "INITIALIZING"), (2, "PROCESSING"), (3, "CANCELLING"),
        (4, "FINALIZING"), (5, "SUCCESSFUL"), (6, "FAILED"), (7, "CANCELLED"),
    ]
}

/// google.firestore.admin.v1.Progress
public struct ProgressMessage: WireMessage {
    public var estimatedWork: Int64
    public var completedWork: Int64

    public init() {
        self.init(estimatedWork: 0)
    }

    public init(estimatedWork: Int64 = 0, completedWork: Int64 = 0) {
        self.estimatedWork = estimatedWork
        self.completedWork = completedWork
    }

    public static let typeName = "google.firestore.admin.v1.Progress"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "estimated_work", &estimatedWork)
        try visitor.int64(2, "completed_work", &completedWork)
    }
}

/// google.firestore.admin.v1.IndexOperationMetadata
public struct IndexOperationMetadata: WireMessage {
    public var startTime: TimestampMessage?
    public var endTime: TimestampMessage?
    public var index: String
    public var state: OperationState
    public var progressDocuments: ProgressMessage?
    public var progressBytes: ProgressMessage?

    public init() {
        self.init(startTime: nil)
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.IndexOperationMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "start_time", &startTime)
        try visitor.message(2, "end_time", &endTime)
        try visitor.string(3, "index", &index)
        try visitor.enumeration(4, "state", &state)
        try visitor.message(5, "progress_documents", &progressDocuments)
        try visitor.message(6, "progress_bytes", &progressBytes)
    }
}

/// google.firestore.admin.v1.FieldOperationMetadata
public struct FieldOperationMetadata: WireMessage {
    public struct IndexConfigDelta: WireMessage {
        public struct ChangeType: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = ChangeType(rawValue: 0)
            public static let add = ChangeType(rawValue: 1)
            public static let remove = ChangeType(rawValue: 2)

            public static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.IndexConfigDelta.ChangeType"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "CHANGE_TYPE_UNSPECIFIED"), (1, "ADD"), (2, "REMOVE"),
            ]
        }

        public var changeType: ChangeType
        public var index: IndexMessage?

        public init() {
            self.init(changeType: ChangeType())
        }

        public init(changeType: ChangeType = ChangeType(), index: IndexMessage? = nil) {
            self.changeType = changeType
            self.index = index
        }

        public static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.IndexConfigDelta"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "change_type", &changeType)
            try visitor.message(2, "index", &index)
        }
    }

    public struct TtlConfigDelta: WireMessage {
        public struct ChangeType: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = ChangeType(rawValue: 0)
            public static let add = ChangeType(rawValue: 1)
            public static let remove = ChangeType(rawValue: 2)

            public static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.TtlConfigDelta.ChangeType"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "CHANGE_TYPE_UNSPECIFIED"), (1, "ADD"), (2, "REMOVE"),
            ]
        }

        public var changeType: ChangeType
        public var expirationOffset: DurationMessage?

        public init() {
            self.init(changeType: ChangeType())
        }

        public init(changeType: ChangeType = ChangeType(), expirationOffset: DurationMessage? = nil) {
            self.changeType = changeType
            self.expirationOffset = expirationOffset
        }

        public static let typeName = "google.firestore.admin.v1.FieldOperationMetadata.TtlConfigDelta"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "change_type", &changeType)
            try visitor.message(3, "expiration_offset", &expirationOffset)
        }
    }

    public var startTime: TimestampMessage?
    public var endTime: TimestampMessage?
    public var field: String
    public var indexConfigDeltas: [IndexConfigDelta]
    public var state: OperationState
    public var progressDocuments: ProgressMessage?
    public var progressBytes: ProgressMessage?
    public var ttlConfigDelta: TtlConfigDelta?

    public init() {
        self.init(startTime: nil)
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.FieldOperationMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct ExportDocumentsMetadata: WireMessage {
    public var startTime: TimestampMessage?
    public var endTime: TimestampMessage?
    public var operationState: OperationState
    public var progressDocuments: ProgressMessage?
    public var progressBytes: ProgressMessage?
    public var collectionIds: [String]
    public var outputUriPrefix: String
    public var namespaceIds: [String]
    public var snapshotTime: TimestampMessage?

    public init() {
        self.init(startTime: nil)
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.ExportDocumentsMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct ImportDocumentsMetadata: WireMessage {
    public var startTime: TimestampMessage?
    public var endTime: TimestampMessage?
    public var operationState: OperationState
    public var progressDocuments: ProgressMessage?
    public var progressBytes: ProgressMessage?
    public var collectionIds: [String]
    public var inputUriPrefix: String
    public var namespaceIds: [String]

    public init() {
        self.init(startTime: nil)
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.ImportDocumentsMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct BulkDeleteDocumentsMetadata: WireMessage {
    public var startTime: TimestampMessage?
    public var endTime: TimestampMessage?
    public var operationState: OperationState
    public var progressDocuments: ProgressMessage?
    public var progressBytes: ProgressMessage?
    public var collectionIds: [String]
    public var namespaceIds: [String]
    public var snapshotTime: TimestampMessage?

    public init() {
        self.init(startTime: nil)
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.BulkDeleteDocumentsMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
