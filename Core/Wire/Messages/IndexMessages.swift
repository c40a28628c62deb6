import HearthModel

/// google.firestore.admin.v1.Index
package struct IndexMessage: WireMessage {
    package struct QueryScope: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = QueryScope(rawValue: 0)
        package static let collection = QueryScope(rawValue: 1)
        package static let collectionGroup = QueryScope(rawValue: 2)
        package static let collectionRecursive = QueryScope(rawValue: 3)

        package static let typeName = "google.firestore.admin.v1.Index.QueryScope"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "QUERY_SCOPE_UNSPECIFIED"), (1, "COLLECTION"), (2, "COLLECTION_GROUP"), (3, "COLLECTION_RECURSIVE"),
        ]
    }

    package struct ApiScope: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let anyApi = ApiScope(rawValue: 0)
        package static let datastoreModeApi = ApiScope(rawValue: 1)
        package static let mongodbCompatibleApi = ApiScope(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Index.ApiScope"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "ANY_API"), (1, "DATASTORE_MODE_API"), (2, "MONGODB_COMPATIBLE_API"),
        ]
    }

    package struct State: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = State(rawValue: 0)
        package static let creating = State(rawValue: 1)
        package static let ready = State(rawValue: 2)
        package static let needsRepair = State(rawValue: 3)

        package static let typeName = "google.firestore.admin.v1.Index.State"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "STATE_UNSPECIFIED"), (1, "CREATING"), (2, "READY"), (3, "NEEDS_REPAIR"),
        ]
    }

    package struct Density: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = Density(rawValue: 0)
        package static let sparseAll = Density(rawValue: 1)
        package static let sparseAny = Density(rawValue: 2)
        package static let dense = Density(rawValue: 3)

        package static let typeName = "google.firestore.admin.v1.Index.Density"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DENSITY_UNSPECIFIED"), (1, "SPARSE_ALL"), (2, "SPARSE_ANY"), (3, "DENSE"),
        ]
    }

    package struct IndexField: WireMessage {
        package struct Order: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = Order(rawValue: 0)
            package static let ascending = Order(rawValue: 1)
            package static let descending = Order(rawValue: 2)

            package static let typeName = "google.firestore.admin.v1.Index.IndexField.Order"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "ORDER_UNSPECIFIED"), (1, "ASCENDING"), (2, "DESCENDING"),
            ]
        }

        package struct ArrayConfig: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = ArrayConfig(rawValue: 0)
            package static let contains = ArrayConfig(rawValue: 1)

            package static let typeName = "google.firestore.admin.v1.Index.IndexField.ArrayConfig"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "ARRAY_CONFIG_UNSPECIFIED"), (1, "CONTAINS"),
            ]
        }

        package struct VectorConfig: WireMessage {
            package struct FlatIndex: WireMessage {
                package init() {}

                package static let typeName = "google.firestore.admin.v1.Index.IndexField.VectorConfig.FlatIndex"

                package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
            }

            package var dimension: Int32
            package var flat: FlatIndex?

            package init() {
                self.init(dimension: 0)
            }

            package init(dimension: Int32 = 0, flat: FlatIndex? = nil) {
                self.dimension = dimension
                self.flat = flat
            }

            package static let typeName = "google.firestore.admin.v1.Index.IndexField.VectorConfig"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.int32(1, "dimension", &dimension)
                try visitor.message(2, "flat", oneof: "type", &flat)
            }
        }

        package struct SearchConfig: WireMessage {
            package struct TextIndexType: WireEnum {
                package var rawValue: Int32

                package init(rawValue: Int32 = 0) {
                    self.rawValue = rawValue
                }

                package static let unspecified = TextIndexType(rawValue: 0)
                package static let tokenized = TextIndexType(rawValue: 1)

                package static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.TextIndexType"
                package static let names: [(number: Int32, name: StaticString)] = [
                    (0, "TEXT_INDEX_TYPE_UNSPECIFIED"), (1, "TOKENIZED"),
                ]
            }

            package struct TextMatchType: WireEnum {
                package var rawValue: Int32

                package init(rawValue: Int32 = 0) {
                    self.rawValue = rawValue
                }

                package static let unspecified = TextMatchType(rawValue: 0)
                package static let matchGlobally = TextMatchType(rawValue: 1)

                package static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.TextMatchType"
                package static let names: [(number: Int32, name: StaticString)] = [
                    (0, "TEXT_MATCH_TYPE_UNSPECIFIED"), (1, "MATCH_GLOBALLY"),
                ]
            }

            package struct SearchTextIndexSpec: WireMessage {
                package var indexType: IndexMessage.IndexField.SearchConfig.TextIndexType
                package var matchType: IndexMessage.IndexField.SearchConfig.TextMatchType

                package init() {
                    self.init(indexType: IndexMessage.IndexField.SearchConfig.TextIndexType())
                }

                package init(
                    indexType: IndexMessage.IndexField.SearchConfig.TextIndexType = IndexMessage.IndexField.SearchConfig
                        .TextIndexType(),
                    matchType: IndexMessage.IndexField.SearchConfig.TextMatchType = IndexMessage.IndexField.SearchConfig
                        .TextMatchType()
                ) {
                    self.indexType = indexType
                    self.matchType = matchType
                }

                package static let typeName =
                    "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchTextIndexSpec"

                package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.enumeration(1, "index_type", &indexType)
                    try visitor.enumeration(2, "match_type", &matchType)
                }
            }

            package struct SearchTextSpec: WireMessage {
                package var indexSpecs: [IndexMessage.IndexField.SearchConfig.SearchTextIndexSpec]

                package init() {
                    self.init(indexSpecs: [])
                }

                package init(indexSpecs: [IndexMessage.IndexField.SearchConfig.SearchTextIndexSpec] = []) {
                    self.indexSpecs = indexSpecs
                }

                package static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchTextSpec"

                package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.messages(1, "index_specs", &indexSpecs)
                }
            }

            package struct SearchGeoSpec: WireMessage {
                package var geoJsonIndexingDisabled: Bool

                package init() {
                    self.init(geoJsonIndexingDisabled: false)
                }

                package init(geoJsonIndexingDisabled: Bool = false) {
                    self.geoJsonIndexingDisabled = geoJsonIndexingDisabled
                }

                package static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchGeoSpec"

                package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.bool(1, "geo_json_indexing_disabled", &geoJsonIndexingDisabled)
                }
            }

            package var textSpec: SearchTextSpec?
            package var geoSpec: SearchGeoSpec?

            package init() {
                self.init(textSpec: nil)
            }

            package init(textSpec: SearchTextSpec? = nil, geoSpec: SearchGeoSpec? = nil) {
                self.textSpec = textSpec
                self.geoSpec = geoSpec
            }

            package static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "text_spec", &textSpec)
                try visitor.message(2, "geo_spec", &geoSpec)
            }
        }

        package var fieldPath: String
        package var order: Order?
        package var arrayConfig: ArrayConfig?
        package var vectorConfig: VectorConfig?
        package var searchConfig: SearchConfig?

        package init() {
            self.init(fieldPath: "")
        }

        package init(
            fieldPath: String = "", order: Order? = nil, arrayConfig: ArrayConfig? = nil,
            vectorConfig: VectorConfig? = nil, searchConfig: SearchConfig? = nil
        ) {
            self.fieldPath = fieldPath
            self.order = order
            self.arrayConfig = arrayConfig
            self.vectorConfig = vectorConfig
            self.searchConfig = searchConfig
        }

        package static let typeName = "google.firestore.admin.v1.Index.IndexField"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field_path", &fieldPath)
            try visitor.enumeration(2, "order", oneof: "value_mode", &order)
            try visitor.enumeration(3, "array_config", oneof: "value_mode", &arrayConfig)
            try visitor.message(4, "vector_config", oneof: "value_mode", &vectorConfig)
            try visitor.message(5, "search_config", oneof: "value_mode", &searchConfig)
        }
    }

    package struct SearchIndexOptions: WireMessage {
        package var textLanguage: String
        package var textLanguageOverrideFieldPath: String

        package init() {
            self.init(textLanguage: "")
        }

        package init(textLanguage: String = "", textLanguageOverrideFieldPath: String = "") {
            self.textLanguage = textLanguage
            self.textLanguageOverrideFieldPath = textLanguageOverrideFieldPath
        }

        package static let typeName = "google.firestore.admin.v1.Index.SearchIndexOptions"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "text_language", &textLanguage)
            try visitor.string(2, "text_language_override_field_path", &textLanguageOverrideFieldPath)
        }
    }

    package var name: String
    package var queryScope: QueryScope
    package var apiScope: ApiScope
    package var fields: [IndexField]
    package var state: State
    package var density: Density
    package var multikey: Bool
    package var shardCount: Int32
    package var unique: Bool
    package var searchIndexOptions: SearchIndexOptions?

    package init() {
        self.init(name: "")
    }

    package init(
        name: String = "", queryScope: QueryScope = QueryScope(), apiScope: ApiScope = ApiScope(),
        fields: [IndexField] = [], state: State = State(), density: Density = Density(), multikey: Bool = false,
        shardCount: Int32 = 0, unique: Bool = false, searchIndexOptions: SearchIndexOptions? = nil
    ) {
        self.name = name
        self.queryScope = queryScope
        self.apiScope = apiScope
        self.fields = fields
        self.state = state
        self.density = density
        self.multikey = multikey
        self.shardCount = shardCount
        self.unique = unique
        self.searchIndexOptions = searchIndexOptions
    }

    package static let typeName = "google.firestore.admin.v1.Index"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.enumeration(2, "query_scope", &queryScope)
        try visitor.messages(3, "fields", &fields)
        try visitor.enumeration(4, "state", &state)
        try visitor.enumeration(5, "api_scope", &apiScope)
        try visitor.enumeration(6, "density", &density)
        try visitor.bool(7, "multikey", &multikey)
        try visitor.int32(8, "shard_count", &shardCount)
        try visitor.message(9, "search_index_options", &searchIndexOptions)
        try visitor.bool(10, "unique", &unique)
    }
}

/// google.firestore.admin.v1.CreateIndexRequest
package struct CreateIndexRequest: WireMessage {
    package var parent: String
    package var index: IndexMessage?

    package init() {
        self.init(parent: "")
    }

    package init(parent: String = "", index: IndexMessage? = nil) {
        self.parent = parent
        self.index = index
    }

    package static let typeName = "google.firestore.admin.v1.CreateIndexRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "index", &index)
    }
}

/// google.firestore.admin.v1.ListIndexesRequest
package struct ListIndexesRequest: WireMessage {
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

    package static let typeName = "google.firestore.admin.v1.ListIndexesRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.firestore.admin.v1.ListIndexesResponse
package struct ListIndexesResponse: WireMessage {
    package var indexes: [IndexMessage]
    package var nextPageToken: String

    package init() {
        self.init(indexes: [])
    }

    package init(indexes: [IndexMessage] = [], nextPageToken: String = "") {
        self.indexes = indexes
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.firestore.admin.v1.ListIndexesResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "indexes", &indexes)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.firestore.admin.v1.GetIndexRequest
package struct GetIndexRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.firestore.admin.v1.GetIndexRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.DeleteIndexRequest
package struct DeleteIndexRequest: WireMessage {
    package var name: String

    package init() {
        self.init(name: "")
    }

    package init(name: String = "") {
        self.name = name
    }

    package static let typeName = "google.firestore.admin.v1.DeleteIndexRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}
