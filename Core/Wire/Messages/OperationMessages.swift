import HearthModel

/// google.longrunning.Operation
public struct OperationMessage: WireMessage {
    public var name: String
    public var metadata: AnyMessage?
    public var done: Bool
    public var error: StatusMessage?
    public var response: AnyMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", metadata: AnyMessage? = nil, done: Bool = false, error: StatusMessage? = nil,
        response: AnyMessage? = nil
    ) {
        self.name = name
        self.metadata = metadata
        self.done = done
        self.error = error
        self.response = response
    }

    public static let typeName = "google.longrunning.Operation"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "metadata", &metadata)
        try visitor.bool(3, "done", &done)
        try visitor.message(4, "error", oneof: "result", &error)
        try visitor.message(5, "response", oneof: "result", &response)
    }
}

/// google.longrunning.GetOperationRequest
public struct GetOperationRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.longrunning.GetOperationRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.ListOperationsRequest
public struct ListOperationsRequest: WireMessage {
    public var name: String
    public var filter: String
    public var pageSize: Int32
    public var pageToken: String
    public var returnPartialSuccess: Bool

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "",
        returnPartialSuccess: Bool = false
    ) {
        self.name = name
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.returnPartialSuccess = returnPartialSuccess
    }

    public static let typeName = "google.longrunning.ListOperationsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "filter", &filter)
        try visitor.int32(2, "page_size", &pageSize)
        try visitor.string(3, "page_token", &pageToken)
        try visitor.string(4, "name", &name)
        try visitor.bool(5, "return_partial_success", &returnPartialSuccess)
    }
}

/// google.longrunning.ListOperationsResponse
public struct ListOperationsResponse: WireMessage {
    public var operations: [OperationMessage]
    public var nextPageToken: String
    public var unreachable: [String]

    public init() {
        self.init(operations: [])
    }

    public init(operations: [OperationMessage] = [], nextPageToken: String = "", unreachable: [String] = []) {
        self.operations = operations
        self.nextPageToken = nextPageToken
        self.unreachable = unreachable
    }

    public static let typeName = "google.longrunning.ListOperationsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "operations", &operations)
        try visitor.string(2, "next_page_token", &nextPageToken)
        try visitor.strings(3, "unreachable", &unreachable)
    }
}

/// google.longrunning.CancelOperationRequest
public struct CancelOperationRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.longrunning.CancelOperationRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.DeleteOperationRequest
public struct DeleteOperationRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.longrunning.DeleteOperationRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.longrunning.WaitOperationRequest
public struct WaitOperationRequest: WireMessage {
    public var name: String
    public var timeout: DurationMessage?

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", timeout: DurationMessage? = nil) {
        self.name = name
        self.timeout = timeout
    }

    public static let typeName = "google.longrunning.WaitOperationRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "timeout", &timeout)
    }
}

/// google.cloud.location.Location
public struct LocationMessage: WireMessage {
    public var name: String
    public var locationId: String
    public var displayName: String
    public var labels: StringMap
    public var metadata: AnyMessage?

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", locationId: String = "", displayName: String = "", labels: StringMap = StringMap(),
        metadata: AnyMessage? = nil
    ) {
        self.name = name
        self.locationId = locationId
        self.displayName = displayName
        self.labels = labels
        self.metadata = metadata
    }

    public static let typeName = "google.cloud.location.Location"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.stringMap(2, "labels", &labels)
        try visitor.message(3, "metadata", &metadata)
        try visitor.string(4, "location_id", &locationId)
        try visitor.string(5, "display_name", &displayName)
    }
}

/// google.cloud.location.ListLocationsRequest
public struct ListLocationsRequest: WireMessage {
    public var name: String
    public var filter: String
    public var pageSize: Int32
    public var pageToken: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.name = name
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    public static let typeName = "google.cloud.location.ListLocationsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.cloud.location.ListLocationsResponse
public struct ListLocationsResponse: WireMessage {
    public var locations: [LocationMessage]
    public var nextPageToken: String

    public init() {
        self.init(locations: [])
    }

    public init(locations: [LocationMessage] = [], nextPageToken: String = "") {
        self.locations = locations
        self.nextPageToken = nextPageToken
    }

    public static let typeName = "google.cloud.location.ListLocationsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "locations", &locations)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.cloud.location.GetLocationRequest
public struct GetLocationRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.cloud.location.GetLocationRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.LocationMetadata
public struct LocationMetadata: WireMessage {
    public init() {}

    public static let typeName = "google.firestore.admin.v1.LocationMetadata"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
