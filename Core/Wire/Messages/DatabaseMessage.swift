import HearthModel

/// google.firestore.admin.v1.Database
public struct DatabaseMessage: WireMessage {
    public struct DatabaseType: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = DatabaseType(rawValue: 0)
        public static let firestoreNative = DatabaseType(rawValue: 1)
        public static let datastoreMode = DatabaseType(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.DatabaseType"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATABASE_TYPE_UNSPECIFIED"), (1, "FIRESTORE_NATIVE"), (2, "DATASTORE_MODE"),
        ]
    }

    public struct ConcurrencyMode: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = ConcurrencyMode(rawValue: 0)
        public static let optimistic = ConcurrencyMode(rawValue: 1)
        public static let pessimistic = ConcurrencyMode(rawValue: 2)
        public static let optimisticWithEntityGroups = ConcurrencyMode(rawValue: 3)

        public static let typeName = "google.firestore.admin.v1.Database.ConcurrencyMode"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "CONCURRENCY_MODE_UNSPECIFIED"), (1, "OPTIMISTIC"), (2, "PESSIMISTIC"),
            (3, "OPTIMISTIC_WITH_ENTITY_GROUPS"),
        ]
    }

    public struct PointInTimeRecoveryEnablement: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = PointInTimeRecoveryEnablement(rawValue: 0)
        public static let pointInTimeRecoveryEnabled = PointInTimeRecoveryEnablement(rawValue: 1)
        public static let pointInTimeRecoveryDisabled = PointInTimeRecoveryEnablement(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.PointInTimeRecoveryEnablement"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "POINT_IN_TIME_RECOVERY_ENABLEMENT_UNSPECIFIED"), (1, "POINT_IN_TIME_RECOVERY_ENABLED"),
            (2, "POINT_IN_TIME_RECOVERY_DISABLED"),
        ]
    }

    public struct AppEngineIntegrationMode: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = AppEngineIntegrationMode(rawValue: 0)
        public static let enabled = AppEngineIntegrationMode(rawValue: 1)
        public static let disabled = AppEngineIntegrationMode(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.AppEngineIntegrationMode"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "APP_ENGINE_INTEGRATION_MODE_UNSPECIFIED"), (1, "ENABLED"), (2, "DISABLED"),
        ]
    }

    public struct DeleteProtectionState: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = DeleteProtectionState(rawValue: 0)
        public static let deleteProtectionDisabled = DeleteProtectionState(rawValue: 1)
        public static let deleteProtectionEnabled = DeleteProtectionState(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.DeleteProtectionState"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DELETE_PROTECTION_STATE_UNSPECIFIED"), (1, "DELETE_PROTECTION_DISABLED"),
            (2, "DELETE_PROTECTION_ENABLED"),
        ]
    }

    public struct DatabaseEdition: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = DatabaseEdition(rawValue: 0)
        public static let standard = DatabaseEdition(rawValue: 1)
        public static let enterprise = DatabaseEdition(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.DatabaseEdition"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATABASE_EDITION_UNSPECIFIED"), (1, "STANDARD"), (2, "ENTERPRISE"),
        ]
    }

    public struct DataAccessMode: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = DataAccessMode(rawValue: 0)
        public static let dataAccessModeEnabled = DataAccessMode(rawValue: 1)
        public static let dataAccessModeDisabled = DataAccessMode(rawValue: 2)

        public static let typeName = "google.firestore.admin.v1.Database.DataAccessMode"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATA_ACCESS_MODE_UNSPECIFIED"), (1, "DATA_ACCESS_MODE_ENABLED"), (2, "DATA_ACCESS_MODE_DISABLED"),
        ]
    }

    public struct CmekConfig: WireMessage {
        public var kmsKeyName: String
        public var activeKeyVersion: [String]

        public init() {
            self.init(kmsKeyName: "")
        }

        public init(kmsKeyName: String = "", activeKeyVersion: [String] = []) {
            self.kmsKeyName = kmsKeyName
            self.activeKeyVersion = activeKeyVersion
        }

        public static let typeName = "google.firestore.admin.v1.Database.CmekConfig"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "kms_key_name", &kmsKeyName)
            try visitor.strings(2, "active_key_version", &activeKeyVersion)
        }
    }

    public struct SourceInfo: WireMessage {
        public struct BackupSource: WireMessage {
            public var backup: String

            public init() {
                self.init(backup: "")
            }

            public init(backup: String = "") {
                self.backup = backup
            }

            public static let typeName = "google.firestore.admin.v1.Database.SourceInfo.BackupSource"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.string(1, "backup", &backup)
            }
        }

        public var backup: BackupSource?
        public var operation: String

        public init() {
            self.init(backup: nil)
        }

        public init(backup: BackupSource? = nil, operation: String = "") {
            self.backup = backup
            self.operation = operation
        }

        public static let typeName = "google.firestore.admin.v1.Database.SourceInfo"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "backup", oneof: "source", &backup)
            try visitor.string(3, "operation", &operation)
        }
    }

    public struct EncryptionConfig: WireMessage {
        public struct GoogleDefaultEncryptionOptions: WireMessage {
            public init() {}

            public static let typeName =
                "google.firestore.admin.v1.Database.EncryptionConfig.GoogleDefaultEncryptionOptions"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
        }

        public struct SourceEncryptionOptions: WireMessage {
            public init() {}

            public static let typeName = "google.firestore.admin.v1.Database.EncryptionConfig.SourceEncryptionOptions"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
        }

        public struct CustomerManagedEncryptionOptions: WireMessage {
            public var kmsKeyName: String

            public init() {
                self.init(kmsKeyName: "")
            }

            public init(kmsKeyName: String = "") {
                self.kmsKeyName = kmsKeyName
            }

            public static let typeName =
                "google.firestore.admin.v1.Database.EncryptionConfig.CustomerManagedEncryptionOptions"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.string(1, "kms_key_name", &kmsKeyName)
            }
        }

        public var googleDefaultEncryption: GoogleDefaultEncryptionOptions?
        public var useSourceEncryption: SourceEncryptionOptions?
        public var customerManagedEncryption: CustomerManagedEncryptionOptions?

        public init() {
            self.init(googleDefaultEncryption: nil)
        }

        public init(
            googleDefaultEncryption: GoogleDefaultEncryptionOptions? = nil,
            useSourceEncryption: SourceEncryptionOptions? = nil,
            customerManagedEncryption: CustomerManagedEncryptionOptions? = nil
        ) {
            self.googleDefaultEncryption = googleDefaultEncryption
            self.useSourceEncryption = useSourceEncryption
            self.customerManagedEncryption = customerManagedEncryption
        }

        public static let typeName = "google.firestore.admin.v1.Database.EncryptionConfig"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "google_default_encryption", oneof: "encryption_type", &googleDefaultEncryption)
            try visitor.message(2, "use_source_encryption", oneof: "encryption_type", &useSourceEncryption)
            try visitor.message(3, "customer_managed_encryption", oneof: "encryption_type", &customerManagedEncryption)
        }
    }

    public var name: String
    public var uid: String
    public var createTime: TimestampMessage?
    public var updateTime: TimestampMessage?
    public var deleteTime: TimestampMessage?
    public var locationId: String
    public var type: DatabaseType
    public var concurrencyMode: ConcurrencyMode
    public var versionRetentionPeriod: DurationMessage?
    public var earliestVersionTime: TimestampMessage?
    public var pointInTimeRecoveryEnablement: PointInTimeRecoveryEnablement
    public var appEngineIntegrationMode: AppEngineIntegrationMode
    public var keyPrefix: String
    public var deleteProtectionState: DeleteProtectionState
    public var cmekConfig: CmekConfig?
    public var previousId: String
    public var sourceInfo: SourceInfo?
    public var tags: StringMap
    public var freeTier: Bool?
    public var etag: String
    public var databaseEdition: DatabaseEdition
    public var realtimeUpdatesMode: RealtimeUpdatesMode
    public var firestoreDataAccessMode: DataAccessMode
    public var mongodbCompatibleDataAccessMode: DataAccessMode

    public init() {
        self.init(name: "")
    }

    public init(
        name: String = "", uid: String = "", createTime: TimestampMessage? = nil, updateTime: TimestampMessage? = nil,
        deleteTime: TimestampMessage? = nil, locationId: String = "", type: DatabaseType = DatabaseType(),
        concurrencyMode: ConcurrencyMode = ConcurrencyMode(), versionRetentionPeriod: DurationMessage? = nil,
        earliestVersionTime: TimestampMessage? = nil,
        pointInTimeRecoveryEnablement: PointInTimeRecoveryEnablement = PointInTimeRecoveryEnablement(),
        appEngineIntegrationMode: AppEngineIntegrationMode = AppEngineIntegrationMode(), keyPrefix: String = "",
        deleteProtectionState: DeleteProtectionState = DeleteProtectionState(), cmekConfig: CmekConfig? = nil,
        previousId: String = "", sourceInfo: SourceInfo? = nil, tags: StringMap = StringMap(), freeTier: Bool? = nil,
        etag: String = "", databaseEdition: DatabaseEdition = DatabaseEdition(),
        realtimeUpdatesMode: RealtimeUpdatesMode = RealtimeUpdatesMode(),
        firestoreDataAccessMode: DataAccessMode = DataAccessMode(),
        mongodbCompatibleDataAccessMode: DataAccessMode = DataAccessMode()
    ) {
        self.name = name
        self.uid = uid
        self.createTime = createTime
        self.updateTime = updateTime
        self.deleteTime = deleteTime
        self.locationId = locationId
        self.type = type
        self.concurrencyMode = concurrencyMode
        self.versionRetentionPeriod = versionRetentionPeriod
        self.earliestVersionTime = earliestVersionTime
        self.pointInTimeRecoveryEnablement = pointInTimeRecoveryEnablement
        self.appEngineIntegrationMode = appEngineIntegrationMode
        self.keyPrefix = keyPrefix
        self.deleteProtectionState = deleteProtectionState
        self.cmekConfig = cmekConfig
        self.previousId = previousId
        self.sourceInfo = sourceInfo
        self.tags = tags
        self.freeTier = freeTier
        self.etag = etag
        self.databaseEdition = databaseEdition
        self.realtimeUpdatesMode = realtimeUpdatesMode
        self.firestoreDataAccessMode = firestoreDataAccessMode
        self.mongodbCompatibleDataAccessMode = mongodbCompatibleDataAccessMode
    }

    public static let typeName = "google.firestore.admin.v1.Database"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "name", &name)
        try visitor.string(3, "uid", &uid)
        try visitor.message(5, "create_time", &createTime)
        try visitor.message(6, "update_time", &updateTime)
        try visitor.message(7, "delete_time", &deleteTime)
        try visitor.string(9, "location_id", &locationId)
        try visitor.enumeration(10, "type", &type)
        try visitor.enumeration(15, "concurrency_mode", &concurrencyMode)
        try visitor.message(17, "version_retention_period", &versionRetentionPeriod)
        try visitor.message(18, "earliest_version_time", &earliestVersionTime)
        try visitor.enumeration(19, "app_engine_integration_mode", &appEngineIntegrationMode)
        try visitor.string(20, "key_prefix", &keyPrefix)
        try visitor.enumeration(21, "point_in_time_recovery_enablement", &pointInTimeRecoveryEnablement)
        try visitor.enumeration(22, "delete_protection_state", &deleteProtectionState)
        try visitor.message(23, "cmek_config", &cmekConfig)
        try visitor.string(25, "previous_id", &previousId)
        try visitor.message(26, "source_info", &sourceInfo)
        try visitor.enumeration(28, "database_edition", &databaseEdition)
        try visitor.stringMap(29, "tags", &tags)
        try visitor.bool(30, "free_tier", oneof: "_free_tier", &freeTier)
        try visitor.enumeration(31, "realtime_updates_mode", &realtimeUpdatesMode)
        try visitor.enumeration(33, "firestore_data_access_mode", &firestoreDataAccessMode)
        try visitor.enumeration(34, "mongodb_compatible_data_access_mode", &mongodbCompatibleDataAccessMode)
        try visitor.string(99, "etag", &etag)
    }
}

public struct RealtimeUpdatesMode: WireEnum {
    public var rawValue: Int32

    public init(rawValue: Int32 = 0) {
        self.rawValue = rawValue
    }

    public static let unspecified = RealtimeUpdatesMode(rawValue: 0)
    public static let realtimeUpdatesModeEnabled = RealtimeUpdatesMode(rawValue: 1)
    public static let realtimeUpdatesModeDisabled = RealtimeUpdatesMode(rawValue: 2)

    public static let typeName = "google.firestore.admin.v1.RealtimeUpdatesMode"
    public static let names: [(number: Int32, name: StaticString)] = [
        (0, "REALTIME_UPDATES_MODE_UNSPECIFIED"), (1, "REALTIME_UPDATES_MODE_ENABLED"),
        (2, "REALTIME_UPDATES_MODE_DISABLED"),
    ]
}
