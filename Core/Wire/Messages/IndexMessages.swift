import HearthModel

/// google.firestore.admin.v1.Index
public struct IndexMessage: WireMessage {
    public struct QueryScope: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = QueryScope(rawValue: 0)
        public static let collection = QueryScope(rawValue: 1)
        public static let collectionGroup = QueryScope(rawValue: 2)
        public static let collectionRecursive = QueryScope(rawValue: 3)

        public static let typeName = "google.firestore.admin.v1.Index.QueryScope"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "QUERY_SCOPE_UNSPECIFIED"), (1, "COLLECTION"), (2, "COLLECTION_GROUP"), (3, "COLLECTION_RECURSIVE"),
        ]
    }

    public struct ApiScope: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let anyApi = ApiScope(rawValue: 0)
        public static let datastoreModeApi = ApiScope(rawValue: 1)
        public static let mongodbCompatibleApi = ApiScope(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Index.ApiScope"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "ANY_API"), (1, "DATASTORE_MODE_API"), (2, "MONGODB_COMPATIBLE_API"),
        ]
    }

    public struct State: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = State(rawValue: 0)
        public static let creating = State(rawValue: 1)
        public static let ready = State(rawValue: 2)
        public static let needsRepair = State(rawValue: 3)

        public static let typeName = "google.firestore.admin.v1.Index.State"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "STATE_UNSPECIFIED"), (1, "CREATING"), (2, "READY"), (3, "NEEDS_REPAIR"),
        ]
    }

    public struct Density: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = Density(rawValue: 0)
        public static let sparseAll = Density(rawValue: 1)
        public static let sparseAny = Density(rawValue: 2)
        public static let dense = Density(rawValue: 3)

        public static let typeName = "google.firestore.admin.v1.Index.Density"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DENSITY_UNSPECIFIED"), (1, "SPARSE_ALL"), (2, "SPARSE_ANY"), (3, "DENSE"),
        ]
    }

    public struct IndexField: WireMessage {
        public struct Order: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = Order(rawValue: 0)
            public static let ascending = Order(rawValue: 1)
            public static let descending = Order(rawValue: 2)

            public static let typeName = "google.firestore.admin.v1.Index.IndexField.Order"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "ORDER_UNSPECIFIED"), (1, "ASCENDING"), (2, "DESCENDING"),
            ]
        }

        public struct ArrayConfig: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = ArrayConfig(rawValue: 0)
            public static let contains = ArrayConfig(rawValue: 1)

            public static let typeName = "google.firestore.admin.v1.Index.IndexField.ArrayConfig"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "ARRAY_CONFIG_UNSPECIFIED"), (1, "CONTAINS"),
            ]
        }

        public struct VectorConfig: WireMessage {
            public struct FlatIndex: WireMessage {
                public init() {}

                public static let typeName = "google.firestore.admin.v1.Index.IndexField.VectorConfig.FlatIndex"

                public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
            }

            public var dimension: Int32
            public var flat: FlatIndex?

            public init() {
                self.init(dimension: 0)
            }

            public init(dimension: Int32 = 0, flat: FlatIndex? = nil) {
                self.dimension = dimension
                self.flat = flat
            }

            public static let typeName = "google.firestore.admin.v1.Index.IndexField.VectorConfig"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.int32(1, "dimension", &dimension)
                try visitor.message(2, "flat", oneof: "type", &flat)
            }
        }

        public struct SearchConfig: WireMessage {
            public struct TextIndexType: WireEnum {
                public var rawValue: Int32

                public init(rawValue: Int32 = 0) {
                    self.rawValue = rawValue
                }

                public static let unspecified = TextIndexType(rawValue: 0)
                public static let tokenized = TextIndexType(rawValue: 1)

                public static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.TextIndexType"
                public static let names: [(number: Int32, name: StaticString)] = [
                    (0, "TEXT_INDEX_TYPE_UNSPECIFIED"), (1, "TOKENIZED"),
                ]
            }

            public struct TextMatchType: WireEnum {
                public var rawValue: Int32

                public init(rawValue: Int32 = 0) {
                    self.rawValue = rawValue
                }

                public static let unspecified = TextMatchType(rawValue: 0)
                public static let matchGlobally = TextMatchType(rawValue: 1)

                public static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.TextMatchType"
                public static let names: [(number: Int32, name: StaticString)] = [
                    (0, "TEXT_MATCH_TYPE_UNSPECIFIED"), (1, "MATCH_GLOBALLY"),
                ]
            }

            public struct SearchTextIndexSpec: WireMessage {
                public var indexType: IndexMessage.IndexField.SearchConfig.TextIndexType
                public var matchType: IndexMessage.IndexField.SearchConfig.TextMatchType

                public init() {
                    self.init(indexType: IndexMessage.IndexField.SearchConfig.TextIndexType())
                }

                public init(
                    indexType: IndexMessage.IndexField.SearchConfig.TextIndexType = IndexMessage.IndexField.SearchConfig
                        .TextIndexType(),
                    matchType: IndexMessage.IndexField.SearchConfig.TextMatchType = IndexMessage.IndexField.SearchConfig
                        .TextMatchType()
                ) {
                    self.indexType = indexType
                    self.matchType = matchType
                }

                public static let typeName =
                    "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchTextIndexSpec"

                public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.enumeration(1, "index_type", &indexType)
                    try visitor.enumeration(2, "match_type", &matchType)
                }
            }

            public struct SearchTextSpec: WireMessage {
                public var indexSpecs: [IndexMessage.IndexField.SearchConfig.SearchTextIndexSpec]

                public init() {
                    self.init(indexSpecs: [])
                }

                public init(indexSpecs: [IndexMessage.IndexField.SearchConfig.SearchTextIndexSpec] = []) {
                    self.indexSpecs = indexSpecs
                }

                public static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchTextSpec"

                public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.messages(1, "index_specs", &indexSpecs)
                }
            }

            public struct SearchGeoSpec: WireMessage {
                public var geoJsonIndexingDisabled: Bool

                public init() {
                    self.init(geoJsonIndexingDisabled: false)
                }

                public init(geoJsonIndexingDisabled: Bool = false) {
                    self.geoJsonIndexingDisabled = geoJsonIndexingDisabled
                }

                public static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig.SearchGeoSpec"

                public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                    try visitor.bool(1, "geo_json_indexing_disabled", &geoJsonIndexingDisabled)
                }
            }

            public var textSpec: SearchTextSpec?
            public var geoSpec: SearchGeoSpec?

            public init() {
                self.init(textSpec: nil)
            }

            public init(textSpec: SearchTextSpec? = nil, geoSpec: SearchGeoSpec? = nil) {
                self.textSpec = textSpec
                self.geoSpec = geoSpec
            }

            public static let typeName = "google.firestore.admin.v1.Index.IndexField.SearchConfig"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "text_spec", &textSpec)
                try visitor.message(2, "geo_spec", &geoSpec)
            }
        }

        public var fieldPath: String
        public var order: Order?
        public var arrayConfig: ArrayConfig?
        public var vectorConfig: VectorConfig?
        public var searchConfig: SearchConfig?

        public init() {
            self.init(fieldPath: "")
        }

        public init(
            fieldPath: String = "", order: Order? = nil, arrayConfig: ArrayConfig? = nil,
            vectorConfig: VectorConfig? = nil, searchConfig: SearchConfig? = nil
        ) {
            self.fieldPath = fieldPath
            self.order = order
            self.arrayConfig = arrayConfig
            self.vectorConfig = vectorConfig
            self.searchConfig = searchConfig
        }

        public static let typeName = "google.firestore.admin.v1.Index.IndexField"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field_path", &fieldPath)
            try visitor.enumeration(2, "order", oneof: "value_mode", &order)
            try visitor.enumeration(3, "array_config", oneof: "value_mode", &arrayConfig)
            try visitor.message(4, "vector_config", oneof: "value_mode", &vectorConfig)
            try visitor.message(5, "search_config", oneof: "value_mode", &searchConfig)
        }
    }

    public struct SearchIndexOptions: WireMessage {
        public var textLanguage: String
        public var textLanguageOverrideFieldPath: String

        public init() {
            self.init(textLanguage: "")
        }

        public init(textLanguage: String = "", textLanguageOverrideFieldPath: String = "") {
            self.textLanguage = textLanguage
            self.textLanguageOverrideFieldPath = textLanguageOverrideFieldPath
        }

        public static let typeName = "google.firestore.admin.v1.Index.SearchIndexOptions"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "text_language", &textLanguage)
            try visitor.string(2, "text_language_override_field_path", &textLanguageOverrideFieldPath)
        }
    }

    public var name: String
    public var queryScope: QueryScope
    public var apiScope: ApiScope
    public var fields: [IndexField]
    public var state: State
    public var density: Density
    public var multikey: Bool
    public var shardCount: Int32
    public var unique: Bool
    public var searchIndexOptions: SearchIndexOptions?

    public init() {
        self.init(name: "")
    }

    public init(
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

    public static let typeName = "google.firestore.admin.v1.Index"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
public struct CreateIndexRequest: WireMessage {
    public var parent: String
    public var index: IndexMessage?

    public init() {
        self.init(parent: "")
    }

    public init(parent: String = "", index: IndexMessage? = nil) {
        self.parent = parent
        self.index = index
    }

    public static let typeName = "google.firestore.admin.v1.CreateIndexRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "index", &index)
    }
}

/// google.firestore.admin.v1.ListIndexesRequest
public struct ListIndexesRequest: WireMessage {
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

    public static let typeName = "google.firestore.admin.v1.ListIndexesRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.string(2, "filter", &filter)
        try visitor.int32(3, "page_size", &pageSize)
        try visitor.string(4, "page_token", &pageToken)
    }
}

/// google.firestore.admin.v1.ListIndexesResponse
public struct ListIndexesResponse: WireMessage {
    public var indexes: [IndexMessage]
    public var nextPageToken: String

    public init() {
        self.init(indexes: [])
    }

    public init(indexes: [IndexMessage] = [], nextPageToken: String = "") {
        self.indexes = indexes
        self.nextPageToken = nextPageToken
    }

    public static let typeName = "google.firestore.admin.v1.ListIndexesResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "indexes", &indexes)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.firestore.admin.v1.GetIndexRequest
public struct GetIndexRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.firestore.admin.v1.GetIndexRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}

/// google.firestore.admin.v1.DeleteIndexRequest
public struct DeleteIndexRequest: WireMessage {
    public var name: String

    public init() {
        self.init(name: "")
    }

    public init(name: String = "") {
        self.name = name
    }

    public static let typeName = "google.firestore.admin.v1.DeleteIndexRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
    }
}
