import HearthModel

/// google.firestore.admin.v1.Field
package struct FieldMessage: WireMessage {
    package struct IndexConfig: WireMessage {
        package var indexes: [IndexMessage]
        package var usesAncestorConfig: Bool
        package var ancestorField: String
        package var reverting: Bool

        package init() {
            self.init(indexes: [])
        }

        package init(
            indexes: [IndexMessage] = [], usesAncestorConfig: Bool = false, ancestorField: String = "",
            reverting: Bool = false
        ) {
            self.indexes = indexes
            self.usesAncestorConfig = usesAncestorConfig
            self.ancestorField = ancestorField
            self.reverting = reverting
        }

        package static let typeName = "google.firestore.admin.v1.Field.IndexConfig"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.messages(1, "indexes", &indexes)
            try visitor.bool(2, "uses_ancestor_config", &usesAncestorConfig)
            try visitor.string(3, "ancestor_field", &ancestorField)
            try visitor.bool(4, "reverting", &reverting)
        }
    }

    package struct TtlConfig: WireMessage {
        package struct State: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = State(rawValue: 0)
            package static let creating = State(rawValue: 1)
            package static let active = State(rawValue: 2)
            package static let needsRepair = State(rawValue: 3)

            package static let typeName = "google.firestore.admin.v1.Field.TtlConfig.State"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "STATE_UNSPECIFIED"), (1, "CREATING"), (2, "ACTIVE"), (3, "NEEDS_REPAIR"),
            ]
        }

        package var state: State
        package var expirationOffset: DurationMessage?

        package init() {
            self.init(state: State())
        }

        package init(state: State = State(), expirationOffset: DurationMessage? = nil) {
            self.state = state
            self.expirationOffset = expirationOffset
        }

        package static let typeName = "google.firestore.admin.v1.Field.TtlConfig"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "state", &state)
            try visitor.message(3, "expiration_offset", &expirationOffset)
        }
    }

    package var name: String
    package var indexConfig: IndexConfig?
    package var ttlConfig: TtlConfig?

    package init() {
        self.init(name: "")
    }

    package init(name: String = "", indexConfig: IndexConfig? = nil, ttlConfig: TtlConfig? = nil) {
        self.name = name
        self.indexConfig = indexConfig
        self.ttlConfig = ttlConfig
    }

    package static let typeName = "google.firestore.admin.v1.Field"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.message(2, "index_config", &indexConfig)
        try visitor.message(3, "ttl_config", &ttlConfig)
    }
}

/// google.firestore.admin.v1.UpdateFieldRequest
package struct UpdateFieldRequest: WireMessage {
    package var field: FieldMessage?
    package var updateMask: [String]?

    package init() {
        self.init(field: nil)
    }

    package init(field: FieldMessage? = nil, updateMask: [String]? = nil) {
        self.field = field
        self.updateMask = updateMask
    }

    package static let typeName = "google.firestore.admin.v1.UpdateFieldRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "field", &field)
        try visitor.fieldMask(2, "update_mask", &updateMask)
    }
}

/// google.firestore.admin.v1.GetFieldRequest
package struct GetFieldRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.firestore.admin.v1.GetFieldRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.ListFieldsRequest
package struct ListFieldsRequest: WireMessage {
    package var parent: String
    package var filter: String
    package var pageSize: Int32
    package var pageToken: String

    package init() {
        self.init(parent: "")
    }

    package init(parent: String = "", filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.parent = parent
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    package static let typeName = "google.firestore.admin.v1.ListFieldsRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.firestore.admin.v1.ListFieldsResponse
package struct ListFieldsResponse: WireMessage {
    package var fields: [FieldMessage]
    package var nextPageToken: String

    package init() {
        self.init(fields: [])
    }

    package init(fields: [FieldMessage] = [], nextPageToken: String = "") {
        self.fields = fields
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.firestore.admin.v1.ListFieldsResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "fields", &fields)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}
