import HearthEngine
import HearthModel

/// Which old versions of a database can be read, as the administration of databases says it. Source: `version_retention_period`,
/// `earliest_version_time` and `point_in_time_recovery_enablement` in google/firestore/admin/v1/database.proto, and "Point-in-time
/// recovery (PITR) overview" in the documentation of Cloud Firestore.
package struct VersionRetention: Sendable, Equatable {
    /// For how long versions are kept from now on.
    package var seconds: Int
    /// The earliest time that can be read, in microseconds since 1970.
    package var earliest: Int64
    /// The version with which the known history begins; nil without one.
    package var beginning: Int64?
    /// Whether versions of seven days are kept.
    package var isPointInTimeRecovery: Bool

    package init(seconds: Int, earliest: Int64, beginning: Int64? = nil, isPointInTimeRecovery: Bool) {
        self.seconds = seconds
        self.earliest = earliest
        self.beginning = beginning
        self.isPointInTimeRecovery = isPointInTimeRecovery
    }
}

/// The switch of point-in-time recovery, stored with the database:
///
///     keyspace meta, "recovery"    the earliest version that was kept when it was switched on (8 bytes); absent while it is off
enum PointInTimeRecovery {
    static let key = Array("recovery".utf8)

    /// The microseconds of which beyond the hour only multiples are read.
    static let minute: Int64 = 60_000_000

    /// The earliest version that was kept when it was switched on; 0 while it is off.
    static func since(in snapshot: any Snapshot) throws(Status) -> Int64 {
        try Database.time(at: key, in: snapshot)
    }

    /// Switches it on or off. Switching on what is on changes nothing.
    /// - Parameter earliest: the earliest version that is kept now, in microseconds since 1970.
    static func set(_ isOn: Bool, earliest: Int64, in transaction: any StoreTransaction) throws(Status) {
        if !isOn { return try transaction.delete(.meta, key) }
        if try since(in: transaction) == 0 { try transaction.put(.meta, key, Database.encode(max(1, earliest))) }
    }

    static func roundedUp(_ time: Int64) -> Int64 { (time + minute - 1) / minute * minute }
}
