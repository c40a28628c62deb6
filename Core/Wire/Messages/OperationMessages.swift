import HearthModel

/// google.longrunning.Operation
package struct OperationMessage: WireMessage {
    package var name: String
    package var metadata: AnyMessage?
    package var done: Bool
    package var error: StatusMessage?
    package var response: AnyMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", metadata: AnyMessage? = nil, done: Bool = false, error: StatusMessage? = nil,
        response: AnyMessage? = nil
    ) {
        self.name = name
        self.metadata = metadata
        self.done = done
        self.error = error
        self.response = response
    }

    package static let typeName = "google.longrunning.Operation"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "metadata", &metadata)
        try visitor.bool(3, "done", &done)
        try visitor.message(4, "error", oneof: "result", &error)
        try visitor.message(5, "response", oneof: "result", &response)
    }
}

/// google.longrunning.GetOperationRequest
package struct GetOperationRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.longrunning.GetOperationRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.ListOperationsRequest
package struct ListOperationsRequest: WireMessage {
    package var name: String
    package var filter: String
    package var pageSize: Int32
    package var pageToken: String
    package var returnPartialSuccess: Bool

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "",
        returnPartialSuccess: Bool = false
    ) {
        self.name = name
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.returnPartialSuccess = returnPartialSuccess
    }

    package static let typeName = "google.longrunning.ListOperationsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "filter", &filter)
        try visitor.int32(2, "page_size", &pageSize)
        try visitor.string(3, "page_token", &pageToken)
        try visitor.string(4, "name", &name)
        try visitor.bool(5, "return_partial_success", &returnPartialSuccess)
    }
}

/// google.longrunning.ListOperationsResponse
package struct ListOperationsResponse: WireMessage {
    package var operations: [OperationMessage]
    package var nextPageToken: String
    package var unreachable: [String]

    package init() {
        self.init(operations: [])
    }

    package init(operations: [OperationMessage] = [], nextPageToken: String = "", unreachable: [String] = []) {
        self.operations = operations
        self.nextPageToken = nextPageToken
        self.unreachable = unreachable
    }

    package static let typeName = "google.longrunning.ListOperationsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "operations", &operations)
        try visitor.string(2, "next_page_token", &nextPageToken)
        try visitor.strings(3, "unreachable", &unreachable)
    }
}

/// google.longrunning.CancelOperationRequest
package struct CancelOperationRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.longrunning.CancelOperationRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.DeleteOperationRequest
package struct DeleteOperationRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.longrunning.DeleteOperationRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.WaitOperationRequest
package struct WaitOperationRequest: WireMessage {
    package var name: String
    package var timeout: DurationMessage?

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", timeout: DurationMessage? = nil) {
        self.name = name
        self.timeout = timeout
    }

    package static let typeName = "google.longrunning.WaitOperationRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "timeout", &timeout)
    }
}

/// google.cloud.location.Location
package struct LocationMessage: WireMessage {
    package var name: String
    package var locationId: String
    package var displayName: String
    package var labels: StringMap
    package var metadata: AnyMessage?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", locationId: String = "", displayName: String = "", labels: StringMap = StringMap(),
        metadata: AnyMessage? = nil
    ) {
        self.name = name
        self.locationId = locationId
        self.displayName = displayName
        self.labels = labels
        self.metadata = metadata
    }

    package static let typeName = "google.cloud.location.Location"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.stringMap(2, "labels", &labels)
        try visitor.message(3, "metadata", &metadata)
        try visitor.string(4, "location_id", &locationId)
        try visitor.string(5, "display_name", &displayName)
    }
}

/// google.cloud.location.ListLocationsRequest
package struct ListLocationsRequest: WireMessage {
    package var name: String
    package var filter: String
    package var pageSize: Int32
    package var pageToken: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.name = name
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    package static let typeName = "google.cloud.location.ListLocationsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.cloud.location.ListLocationsResponse
package struct ListLocationsResponse: WireMessage {
    package var locations: [LocationMessage]
    package var nextPageToken: String

    package init() {
        self.init(locations: [])
    }

    package init(locations: [LocationMessage] = [], nextPageToken: String = "") {
        self.locations = locations
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.cloud.location.ListLocationsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "locations", &locations)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.cloud.location.GetLocationRequest
package struct GetLocationRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.cloud.location.GetLocationRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.LocationMetadata
package struct LocationMetadata: WireMessage {
    package init() {}

    package static let typeName = "google.firestore.admin.v1.LocationMetadata"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
