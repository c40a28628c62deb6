import HearthModel

/// google.firestore.v1.Write
package struct WriteMessage: WireMessage {
    package var update: DocumentMessage?
    package var delete: String?
    package var verify: String?
    package var transform: DocumentTransformMessage?
    package var updateMask: DocumentMaskMessage?
    package var updateTransforms: [DocumentTransformMessage.FieldTransform]
    package var currentDocument: PreconditionMessage?

    package init() {
        self.init(update: nil)
    }

    package init(
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

    package static let typeName = "google.firestore.v1.Write"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
package struct DocumentTransformMessage: WireMessage {
    package struct FieldTransform: WireMessage {
        package struct ServerValue: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = ServerValue(rawValue: 0)
            package static let requestTime = ServerValue(rawValue: 1)

            package static let typeName = "google.firestore.v1.DocumentTransform.FieldTransform.ServerValue"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "SERVER_VALUE_UNSPECIFIED"), (1, "REQUEST_TIME"),
            ]
        }

        package var fieldPath: String
        package var setToServerValue: ServerValue?
        package var increment: Value?
        package var maximum: Value?
        package var minimum: Value?
        package var appendMissingElements: [Value]?
        package var removeAllFromArray: [Value]?

        package init() {
            self.init(fieldPath: "")
        }

        package init(
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

        package static let typeName = "google.firestore.v1.DocumentTransform.FieldTransform"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field_path", &fieldPath)
            try visitor.enumeration(2, "set_to_server_value", oneof: "transform_type", &setToServerValue)
            try visitor.value(3, "increment", oneof: "transform_type", &increment)
            try visitor.value(4, "maximum", oneof: "transform_type", &maximum)
            try visitor.value(5, "minimum", oneof: "transform_type", &minimum)
            try visitor.arrayValue(6, "append_missing_elements", oneof: "transform_type", &appendMissingElements)
            try visitor.arrayValue(7, "remove_all_from_array", oneof: "transform_type", &removeAllFromArray)
        }
    }

    package var document: String
    package var fieldTransforms: [FieldTransform]

    package init() {
        self.init(document: "")
    }

    package init(document: String = "", fieldTransforms: [FieldTransform] = []) {
        self.document = document
        self.fieldTransforms = fieldTransforms
    }

    package static let typeName = "google.firestore.v1.DocumentTransform"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "document", &document)
        try visitor.messages(2, "field_transforms", &fieldTransforms)
    }
}

/// google.firestore.v1.WriteResult
package struct WriteResultMessage: WireMessage {
    package var updateTime: TimestampMessage?
    package var transformResults: [Value]

    package init() {
        self.init(updateTime: nil)
    }

    package init(updateTime: TimestampMessage? = nil, transformResults: [Value] = []) {
        self.updateTime = updateTime
        self.transformResults = transformResults
    }

    package static let typeName = "google.firestore.v1.WriteResult"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "update_time", &updateTime)
        try visitor.values(2, "transform_results", &transformResults)
    }
}

/// google.firestore.v1.WriteRequest
package struct WriteRequest: WireMessage {
    package var database: String
    package var streamId: String
    package var writes: [WriteMessage]
    package var streamToken: [UInt8]
    package var labels: StringMap
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
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

    package static let typeName = "google.firestore.v1.WriteRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.string(2, "stream_id", &streamId)
        try visitor.messages(3, "writes", &writes)
        try visitor.bytes(4, "stream_token", &streamToken)
        try visitor.stringMap(5, "labels", &labels)
        try visitor.message(6, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.WriteResponse
package struct WriteResponse: WireMessage {
    package var streamId: String
    package var streamToken: [UInt8]
    package var writeResults: [WriteResultMessage]
    package var commitTime: TimestampMessage?

    package init() {
        self.init(streamId: "")
    }

    package init(
        streamId: String = "", streamToken: [UInt8] = [], writeResults: [WriteResultMessage] = [],
        commitTime: TimestampMessage? = nil
    ) {
        self.streamId = streamId
        self.streamToken = streamToken
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    package static let typeName = "google.firestore.v1.WriteResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "stream_id", &streamId)
        try visitor.bytes(2, "stream_token", &streamToken)
        try visitor.messages(3, "write_results", &writeResults)
        try visitor.message(4, "commit_time", &commitTime)
    }
}

/// google.firestore.v1.BatchWriteRequest
package struct BatchWriteRequest: WireMessage {
    package var database: String
    package var writes: [WriteMessage]
    package var labels: StringMap
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", writes: [WriteMessage] = [], labels: StringMap = StringMap(),
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.writes = writes
        self.labels = labels
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.BatchWriteRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.messages(2, "writes", &writes)
        try visitor.stringMap(3, "labels", &labels)
        try visitor.message(4, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BatchWriteResponse
package struct BatchWriteResponse: WireMessage {
    package var writeResults: [WriteResultMessage]
    package var status: [StatusMessage]

    package init() {
        self.init(writeResults: [])
    }

    package init(writeResults: [WriteResultMessage] = [], status: [StatusMessage] = []) {
        self.writeResults = writeResults
        self.status = status
    }

    package static let typeName = "google.firestore.v1.BatchWriteResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "write_results", &writeResults)
        try visitor.messages(2, "status", &status)
    }
}
