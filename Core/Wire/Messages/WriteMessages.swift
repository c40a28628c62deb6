import HearthModel

/// google.firestore.v1.Write
public struct WriteMessage: WireMessage {
    public var update: DocumentMessage?
    public var delete: String?
    public var verify: String?
    public var transform: DocumentTransformMessage?
    public var updateMask: DocumentMaskMessage?
    public var updateTransforms: [DocumentTransformMessage.FieldTransform]
    public var currentDocument: PreconditionMessage?

    public init() {
        self.init(update: nil)
    }

    public init(
        update: DocumentMessage? = nil, delete: String? = nil, verify: String? = nil,
        transform: DocumentTransformMessage? = nil, updateMask: DocumentMaskMessage? = nil,
        updateTransforms: [DocumentTransformMessage.FieldTransform] = [], currentDocument: PreconditionMessage? = nil
    ) {
        self.update = update
        self.delete = delete
        self.verify = verify
        self.transform = transform
        self.updateMask = updateMask
        self.updateTransforms = updateTransforms
        self.currentDocument = currentDocument
    }

    public static let typeName = "google.firestore.v1.Write"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "update", oneof: "operation", &update)
        try visitor.string(2, "delete", oneof: "operation", &delete)
        try visitor.message(3, "update_mask", &updateMask)
        try visitor.message(4, "current_document", &currentDocument)
        try visitor.string(5, "verify", oneof: "operation", &verify)
        try visitor.message(6, "transform", oneof: "operation", &transform)
        try visitor.messages(7, "update_transforms", &updateTransforms)
    }
}

/// google.firestore.v1.DocumentTransform
public struct DocumentTransformMessage: WireMessage {
    public struct FieldTransform: WireMessage {
        public struct ServerValue: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = ServerValue(rawValue: 0)
            public static let requestTime = ServerValue(rawValue: 1)

            public static let typeName = "google.firestore.v1.DocumentTransform.FieldTransform.ServerValue"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "SERVER_VALUE_UNSPECIFIED"), (1, "REQUEST_TIME"),
            ]
        }

        public var fieldPath: String
        public var setToServerValue: ServerValue?
        public var increment: Value?
        public var maximum: Value?
        public var minimum: Value?
        public var appendMissingElements: [Value]?
        public var removeAllFromArray: [Value]?

        public init() {
            self.init(fieldPath: "")
        }

        public init(
            fieldPath: String = "", setToServerValue: ServerValue? = nil, increment: Value? = nil,
            maximum: Value? = nil, minimum: Value? = nil, appendMissingElements: [Value]? = nil,
            removeAllFromArray: [Value]? = nil
        ) {
            self.fieldPath = fieldPath
            self.setToServerValue = setToServerValue
            self.increment = increment
            self.maximum = maximum
            self.minimum = minimum
            self.appendMissingElements = appendMissingElements
            self.removeAllFromArray = removeAllFromArray
        }

        public static let typeName = "google.firestore.v1.DocumentTransform.FieldTransform"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field_path", &fieldPath)
            try visitor.enumeration(2, "set_to_server_value", oneof: "transform_type", &setToServerValue)
            try visitor.value(3, "increment", oneof: "transform_type", &increment)
            try visitor.value(4, "maximum", oneof: "transform_type", &maximum)
            try visitor.value(5, "minimum", oneof: "transform_type", &minimum)
            try visitor.arrayValue(6, "append_missing_elements", oneof: "transform_type", &appendMissingElements)
            try visitor.arrayValue(7, "remove_all_from_array", oneof: "transform_type", &removeAllFromArray)
        }
    }

    public var document: String
    public var fieldTransforms: [FieldTransform]

    public init() {
        self.init(document: "")
    }

    public init(document: String = "", fieldTransforms: [FieldTransform] = []) {
        self.document = document
        self.fieldTransforms = fieldTransforms
    }

    public static let typeName = "google.firestore.v1.DocumentTransform"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.messages(2, "field_transforms", &fieldTransforms)
    }
}

/// google.firestore.v1.WriteResult
public struct WriteResultMessage: WireMessage {
    public var updateTime: TimestampMessage?
    public var transformResults: [Value]

    public init() {
        self.init(updateTime: nil)
    }

    public init(updateTime: TimestampMessage? = nil, transformResults: [Value] = []) {
        self.updateTime = updateTime
        self.transformResults = transformResults
    }

    public static let typeName = "google.firestore.v1.WriteResult"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "update_time", &updateTime)
        try visitor.values(2, "transform_results", &transformResults)
    }
}

/// google.firestore.v1.WriteRequest
public struct WriteRequest: WireMessage {
    public var database: String
    public var streamId: String
    public var writes: [WriteMessage]
    public var streamToken: [UInt8]
    public var labels: StringMap
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
        database: String = "", streamId: String = "", writes: [WriteMessage] = [], streamToken: [UInt8] = [],
        labels: StringMap = StringMap(), requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.streamId = streamId
        self.writes = writes
        self.streamToken = streamToken
        self.labels = labels
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.WriteRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.string(2, "stream_id", &streamId)
        try visitor.messages(3, "writes", &writes)
        try visitor.bytes(4, "stream_token", &streamToken)
        try visitor.stringMap(5, "labels", &labels)
        try visitor.message(6, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.WriteResponse
public struct WriteResponse: WireMessage {
    public var streamId: String
    public var streamToken: [UInt8]
    public var writeResults: [WriteResultMessage]
    public var commitTime: TimestampMessage?

    public init() {
        self.init(streamId: "")
    }

    public init(
        streamId: String = "", streamToken: [UInt8] = [], writeResults: [WriteResultMessage] = [],
        commitTime: TimestampMessage? = nil
    ) {
        self.streamId = streamId
        self.streamToken = streamToken
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    public static let typeName = "google.firestore.v1.WriteResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "stream_id", &streamId)
        try visitor.bytes(2, "stream_token", &streamToken)
        try visitor.messages(3, "write_results", &writeResults)
        try visitor.message(4, "commit_time", &commitTime)
    }
}

/// google.firestore.v1.BatchWriteRequest
public struct BatchWriteRequest: WireMessage {
    public var database: String
    public var writes: [WriteMessage]
    public var labels: StringMap
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
        database: String = "", writes: [WriteMessage] = [], labels: StringMap = StringMap(),
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.writes = writes
        self.labels = labels
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.BatchWriteRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.messages(2, "writes", &writes)
        try visitor.stringMap(3, "labels", &labels)
        try visitor.message(4, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BatchWriteResponse
public struct BatchWriteResponse: WireMessage {
    public var writeResults: [WriteResultMessage]
    public var status: [StatusMessage]

    public init() {
        self.init(writeResults: [])
    }

    public init(writeResults: [WriteResultMessage] = [], status: [StatusMessage] = []) {
        self.writeResults = writeResults
        self.status = status
    }

    public static let typeName = "google.firestore.v1.BatchWriteResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "write_results", &writeResults)
        try visitor.messages(2, "status", &status)
    }
}
