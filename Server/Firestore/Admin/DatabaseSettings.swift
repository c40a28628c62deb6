import HearthDocuments
import HearthModel
import HearthWire

/// The settings of a database, stored as a note in its own store.
struct DatabaseSettings: Sendable {
    static let note = "settings"
    static let locationDefault = "local"

    var uid: String
    var createTime: Timestamp
    var updateTime: Timestamp
    var locationID = Self.locationDefault
    var isDeleteProtected = false

    init(now: Timestamp) {
        self.init(now: now, .random(in: .min ... .max), .random(in: .min ... .max))
    }

    /// The settings of a database that does not exist: always the same values.
    init(ofMissing name: DatabaseName, now: Timestamp) {
        var hashes: (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9AE1_6A3B_2F90_404F)
        for byte in name.string.utf8 {
            hashes.0 = (hashes.0 ^ UInt64(byte)) &* 0x100_0000_01B3
            hashes.1 = (hashes.1 ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        self.init(now: now, hashes.0, hashes.1)
    }

    private init(now: Timestamp, _ first: UInt64, _ second: UInt64) {
        uid = UUIDString.from(first, second)
        createTime = now
        updateTime = now
    }

    init?(_ fields: MapValue) {
        guard case .string(let uid)? = fields["uid"], case .timestamp(let created)? = fields["createTime"],
            case .timestamp(let updated)? = fields["updateTime"], case .string(let location)? = fields["location"]
        else { return nil }
        self.uid = uid
        createTime = created
        updateTime = updated
        locationID = location
        isDeleteProtected = fields["deleteProtection"] == .boolean(true)
    }

    var fields: MapValue {
        MapValue([
            .init(name: "uid", value: .string(uid)),
            .init(name: "createTime", value: .timestamp(createTime)),
            .init(name: "updateTime", value: .timestamp(updateTime)),
            .init(name: "location", value: .string(locationID)),
            .init(name: "deleteProtection", value: .boolean(isDeleteProtected)),
        ])
    }

    /// Changes with every update.
    var etag: String { Base64.encodeURLSafe(Array(String(updateTime.microseconds).utf8)) }

    /// - Parameter retention: which old versions are readable.
    func message(_ name: DatabaseName, _ retention: VersionRetention) -> DatabaseMessage {
        // The settings of a database that was made by its first use may have been made later.
        let begin = min(createTime, retention.beginning.map { Timestamp(microseconds: $0) } ?? createTime)
        return DatabaseMessage(
            name: name.string, uid: uid, createTime: TimestampMessage(createTime),
            updateTime: TimestampMessage(updateTime),
            locationId: locationID, type: .firestoreNative, concurrencyMode: .pessimistic,
            versionRetentionPeriod: DurationMessage(seconds: Int64(retention.seconds)),
            earliestVersionTime: TimestampMessage(max(Timestamp(microseconds: retention.earliest), begin)),
            pointInTimeRecoveryEnablement: retention.isPointInTimeRecovery
                ? .pointInTimeRecoveryEnabled : .pointInTimeRecoveryDisabled,
            appEngineIntegrationMode: .disabled,
            deleteProtectionState: isDeleteProtected ? .deleteProtectionEnabled : .deleteProtectionDisabled, etag: etag,
            databaseEdition: .standard, realtimeUpdatesMode: .realtimeUpdatesModeEnabled)
    }
}
