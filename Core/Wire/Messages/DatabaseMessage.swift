import HearthModel

/// google.firestore.admin.v1.Database
package struct DatabaseMessage: WireMessage {
    package struct DatabaseType: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = DatabaseType(rawValue: 0)
        package static let firestoreNative = DatabaseType(rawValue: 1)
        package static let datastoreMode = DatabaseType(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.DatabaseType"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATABASE_TYPE_UNSPECIFIED"), (1, "FIRESTORE_NATIVE"), (2, "DATASTORE_MODE"),
        ]
    }

    package struct ConcurrencyMode: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = ConcurrencyMode(rawValue: 0)
        package static let optimistic = ConcurrencyMode(rawValue: 1)
        package static let pessimistic = ConcurrencyMode(rawValue: 2)
        package static let optimisticWithEntityGroups = ConcurrencyMode(rawValue: 3)

        package static let typeName = "google.firestore.admin.v1.Database.ConcurrencyMode"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "CONCURRENCY_MODE_UNSPECIFIED"), (1, "OPTIMISTIC"), (2, "PESSIMISTIC"),
            (3, "OPTIMISTIC_WITH_ENTITY_GROUPS"),
        ]
    }

    package struct PointInTimeRecoveryEnablement: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = PointInTimeRecoveryEnablement(rawValue: 0)
        package static let pointInTimeRecoveryEnabled = PointInTimeRecoveryEnablement(rawValue: 1)
        package static let pointInTimeRecoveryDisabled = PointInTimeRecoveryEnablement(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.PointInTimeRecoveryEnablement"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "POINT_IN_TIME_RECOVERY_ENABLEMENT_UNSPECIFIED"), (1, "POINT_IN_TIME_RECOVERY_ENABLED"),
            (2, "POINT_IN_TIME_RECOVERY_DISABLED"),
        ]
    }

    package struct AppEngineIntegrationMode: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = AppEngineIntegrationMode(rawValue: 0)
        package static let enabled = AppEngineIntegrationMode(rawValue: 1)
        package static let disabled = AppEngineIntegrationMode(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.AppEngineIntegrationMode"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "APP_ENGINE_INTEGRATION_MODE_UNSPECIFIED"), (1, "ENABLED"), (2, "DISABLED"),
        ]
    }

    package struct DeleteProtectionState: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = DeleteProtectionState(rawValue: 0)
        package static let deleteProtectionDisabled = DeleteProtectionState(rawValue: 1)
        package static let deleteProtectionEnabled = DeleteProtectionState(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.DeleteProtectionState"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DELETE_PROTECTION_STATE_UNSPECIFIED"), (1, "DELETE_PROTECTION_DISABLED"),
            (2, "DELETE_PROTECTION_ENABLED"),
        ]
    }

    package struct DatabaseEdition: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = DatabaseEdition(rawValue: 0)
        package static let standard = DatabaseEdition(rawValue: 1)
        package static let enterprise = DatabaseEdition(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.DatabaseEdition"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATABASE_EDITION_UNSPECIFIED"), (1, "STANDARD"), (2, "ENTERPRISE"),
        ]
    }

    package struct DataAccessMode: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = DataAccessMode(rawValue: 0)
        package static let dataAccessModeEnabled = DataAccessMode(rawValue: 1)
        package static let dataAccessModeDisabled = DataAccessMode(rawValue: 2)

        package static let typeName = "google.firestore.admin.v1.Database.DataAccessMode"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DATA_ACCESS_MODE_UNSPECIFIED"), (1, "DATA_ACCESS_MODE_ENABLED"), (2, "DATA_ACCESS_MODE_DISABLED"),
        ]
    }

    package struct CmekConfig: WireMessage {
        package var kmsKeyName: String
        package var activeKeyVersion: [String]

        package init() {
            self.init(kmsKeyName: "")
        }

        package init(kmsKeyName: String = "", activeKeyVersion: [String] = []) {
            self.kmsKeyName = kmsKeyName
            self.activeKeyVersion = activeKeyVersion
        }

        package static let typeName = "google.firestore.admin.v1.Database.CmekConfig"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "kms_key_name", &kmsKeyName)
            try visitor.strings(2, "active_key_version", &activeKeyVersion)
        }
    }

    package struct SourceInfo: WireMessage {
        package struct BackupSource: WireMessage {
            package var backup: String

            package init() {
                self.init(backup: "")
            }

            package init(backup: String = "") {
                self.backup = backup
            }

            package static let typeName = "google.firestore.admin.v1.Database.SourceInfo.BackupSource"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.string(1, "backup", &backup)
            }
        }

        package var backup: BackupSource?
        package var operation: String

        package init() {
            self.init(backup: nil)
        }

        package init(backup: BackupSource? = nil, operation: String = "") {
            self.backup = backup
            self.operation = operation
        }

        package static let typeName = "google.firestore.admin.v1.Database.SourceInfo"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "backup", oneof: "source", &backup)
            try visitor.string(3, "operation", &operation)
        }
    }

    package struct EncryptionConfig: WireMessage {
        package struct GoogleDefaultEncryptionOptions: WireMessage {
            package init() {}

            package static let typeName =
                "google.firestore.admin.v1.Database.EncryptionConfig.GoogleDefaultEncryptionOptions"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
        }

        package struct SourceEncryptionOptions: WireMessage {
            package init() {}

            package static let typeName = "google.firestore.admin.v1.Database.EncryptionConfig.SourceEncryptionOptions"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
        }

        package struct CustomerManagedEncryptionOptions: WireMessage {
            package var kmsKeyName: String

            package init() {
                self.init(kmsKeyName: "")
            }

            package init(kmsKeyName: String = "") {
                self.kmsKeyName = kmsKeyName
            }

            package static let typeName =
                "google.firestore.admin.v1.Database.EncryptionConfig.CustomerManagedEncryptionOptions"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.string(1, "kms_key_name", &kmsKeyName)
            }
        }

        package var googleDefaultEncryption: GoogleDefaultEncryptionOptions?
        package var useSourceEncryption: SourceEncryptionOptions?
        package var customerManagedEncryption: CustomerManagedEncryptionOptions?

        package init() {
            self.init(googleDefaultEncryption: nil)
        }

        package init(
            googleDefaultEncryption: GoogleDefaultEncryptionOptions? = nil,
            useSourceEncryption: SourceEncryptionOptions? = nil,
            customerManagedEncryption: CustomerManagedEncryptionOptions? = nil
        ) {
            self.googleDefaultEncryption = googleDefaultEncryption
            self.useSourceEncryption = useSourceEncryption
            self.customerManagedEncryption = customerManagedEncryption
        }

        package static let typeName = "google.firestore.admin.v1.Database.EncryptionConfig"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "google_default_encryption", oneof: "encryption_type", &googleDefaultEncryption)
            try visitor.message(2, "use_source_encryption", oneof: "encryption_type", &useSourceEncryption)
            try visitor.message(3, "customer_managed_encryption", oneof: "encryption_type", &customerManagedEncryption)
        }
    }

    package var name: String
    package var uid: String
    package var createTime: TimestampMessage?
    package var updateTime: TimestampMessage?
    package var deleteTime: TimestampMessage?
    package var locationId: String
    package var type: DatabaseType
    package var concurrencyMode: ConcurrencyMode
    package var versionRetentionPeriod: DurationMessage?
    package var earliestVersionTime: TimestampMessage?
    package var pointInTimeRecoveryEnablement: PointInTimeRecoveryEnablement
    package var appEngineIntegrationMode: AppEngineIntegrationMode
    package var keyPrefix: String
    package var deleteProtectionState: DeleteProtectionState
    package var cmekConfig: CmekConfig?
    package var previousId: String
    package var sourceInfo: SourceInfo?
    package var tags: StringMap
    package var freeTier: Bool?
    package var etag: String
    package var databaseEdition: DatabaseEdition
    package var realtimeUpdatesMode: RealtimeUpdatesMode
    package var firestoreDataAccessMode: DataAccessMode
    package var mongodbCompatibleDataAccessMode: DataAccessMode

    package init() {
        self.init(name: "")
    }

    package init(
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

    package static let typeName = "google.firestore.admin.v1.Database"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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

package struct RealtimeUpdatesMode: WireEnum {
    package var rawValue: Int32

    package init(rawValue: Int32 = 0) {
        self.rawValue = rawValue
    }

    package static let unspecified = RealtimeUpdatesMode(rawValue: 0)
    package static let realtimeUpdatesModeEnabled = RealtimeUpdatesMode(rawValue: 1)
    package static let realtimeUpdatesModeDisabled = RealtimeUpdatesMode(rawValue: 2)

    package static let typeName = "google.firestore.admin.v1.RealtimeUpdatesMode"
    package static let names: [(number: Int32, name: StaticString)] = [
        (0, "REALTIME_UPDATES_MODE_UNSPECIFIED"), (1, "REALTIME_UPDATES_MODE_ENABLED"),
        (2, "REALTIME_UPDATES_MODE_DISABLED"),
    ]
}
