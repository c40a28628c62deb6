import HearthModel

extension Limits {
    /// Seconds in which a client must take the next part of a backup (`StoreImages.pieceBytes`).
    package static let backupIdleSecondsMax = 120
    /// Seconds that a backup may take: what it reads keeps SQLite's log from being emptied.
    package static let backupSecondsMax = 86_400
    /// Seconds in which the databases that are open must have been brought up to date in their files.
    static let backupImageSecondsMax = 300
    /// Milliseconds for which a database waits for others, so that all are backed up as of one moment.
    static let backupHoldMillisecondsMax = 1000
    /// Bytes of a manifest.
    package static let backupManifestBytesMax = 64 << 20
    /// Folders of a file's name, and the name: what is left of a restore that failed is removed to this depth.
    static let backupPathComponentsMax = 64
    /// Bytes of what an archive has for its next file: a long name.
    static let tarRecordBytesMax = 64 << 10
}
