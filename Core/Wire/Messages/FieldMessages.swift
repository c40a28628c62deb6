import HearthModel

/// google.firestore.admin.v1.Field
public struct FieldMessage: WireMessage {
    public struct IndexConfig: WireMessage {
        public var indexes: [IndexMessage]
        public var usesAncestorConfig: Bool
        public var ancestorField: String
        public var reverting: Bool

        public init() {
            self.init(indexes: [])
        }

        public init(
            indexes: [IndexMessage] = [], usesAncestorConfig: Bool = false, ancestorField: String = "",
            reverting: Bool = false
        ) {
            self.indexes = indexes
            self.usesAncestorConfig = usesAncestorConfig
            self.ancestorField = ancestorField
            self.reverting = reverting
        }

        public static let typeName = "google.firestore.admin.v1.Field.IndexConfig"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.messages(1, "indexes", &indexes)
            try visitor.bool(2, "uses_ancestor_config", &usesAncestorConfig)
            try visitor.string(3, "ancestor_field", &ancestorField)
            try visitor.bool(4, "reverting", &reverting)
        }
    }

    public struct TtlConfig: WireMessage {
        public struct State: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = State(rawValue: 0)
            public static let creating = State(rawValue: 1)
            public static let active = State(rawValue: 2)
            public static let needsRepair = State(rawValue: 3)

            public static let typeName = "google.firestore.admin.v1.Field.TtlConfig.State"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "STATE_UNSPECIFIED"), (1, "CREATING"), (2, "ACTIVE"), (3, "NEEDS_REPAIR"),
            ]
        }

        public var state: State
        public var expirationOffset: DurationMessage?

        public init() {
            self.init(state: State())
        }

        public init(state: State = State(), expirationOffset: DurationMessage? = nil) {
            self.state = state
            self.expirationOffset = expirationOffset
        }

        public static let typeName = "google.firestore.admin.v1.Field.TtlConfig"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "state", &state)
            try visitor.message(3, "expiration_offset", &expirationOffset)
        }
    }

    public var name: String
    public var indexConfig: IndexConfig?
    public var ttlConfig: TtlConfig?

    public init() {
        self.init(name: "")
    }

    public init(name: String = "", indexConfig: IndexConfig? = nil, ttlConfig: TtlConfig? = nil) {
        self.name = name
        self.indexConfig = indexConfig
        self.ttlConfig = ttlConfig
    }

    public static let typeName = "google.firestore.admin.v1.Field"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "index_config", &indexConfig)
        try visitor.message(3, "ttl_config", &ttlConfig)
    }
}

/// google.firestore.admin.v1.UpdateFieldRequest
public struct UpdateFieldRequest: WireMessage {
    public var field: FieldMessage?
    public var updateMask: [String]?

    public init() {
        self.init(field: nil)
    }

    public init(field: FieldMessage? = nil, updateMask: [String]? = nil) {
        self.field = field
        self.updateMask = updateMask
    }

    public static let typeName = "google.firestore.admin.v1.UpdateFieldRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "field", &field)
        try visitor.fieldMask(2, "update_mask", &updateMask)
    }
}

/// google.firestore.admin.v1.GetFieldRequest
public struct GetFieldRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.firestore.admin.v1.GetFieldRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.ListFieldsRequest
public struct ListFieldsRequest: WireMessage {
    public var parent: String
    public var filter: String
    public var pageSize: Int32
    public var pageToken: String

    public init() {
        self.init(parent: "")
    }

    public init(parent: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.parent = parent
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    public static let typeName = "google.firestore.admin.v1.ListFieldsRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.firestore.admin.v1.ListFieldsResponse
public struct ListFieldsResponse: WireMessage {
    public var fields: [FieldMessage]
    public var nextPageToken: String

    public init() {
        self.init(fields: [])
    }

    public init(fields: [FieldMessage] = [], nextPageToken: String = "") {
        self.fields = fields
        self.nextPageToken = nextPageToken
    }

    public static let typeName = "google.firestore.admin.v1.ListFieldsResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "fields", &fields)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}
