public import Foundation
internal import HearthModel

/// `PersistentCacheSettings` or `MemoryCacheSettings`.
public protocol LocalCacheSettings {}

/// `MemoryEagerGCSetting` or `MemoryLRUGCSettings`.
public protocol MemoryGarbageCollectorSettings {}

/// A cache in a file, which outlives the program. Documents that were not used for long go when it outgrows its size.
public final class PersistentCacheSettings: NSObject, LocalCacheSettings, Sendable {
    let sizeBytes: Int64
    let directory: URL?

    /// 100 MiB.
    public convenience override init() {
        self.init(sizeBytes: NSNumber(value: FirestoreSettings.defaultCacheSizeBytes))
    }

    /// - Parameter sizeBytes: at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
    public convenience init(sizeBytes: NSNumber) {
        self.init(sizeBytes: sizeBytes, directory: nil)
    }

    /// Ours: says where the file lies, too.
    /// - Parameter directory: nil for `firestore` in `$XDG_DATA_HOME`, else in `~/.local/share`.
    public init(sizeBytes: NSNumber, directory: URL?) {
        orTrap { () throws(Status) in try FirestoreSettings.validate(cacheSizeBytes: sizeBytes.int64Value) }
        self.sizeBytes = sizeBytes.int64Value
        self.directory = directory
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? PersistentCacheSettings else { return false }
        return sizeBytes == other.sizeBytes && directory == other.directory
    }

    public override var hash: Int { sizeBytes.hashValue }
}

/// A cache that is forgotten with the program.
public final class MemoryCacheSettings: NSObject, LocalCacheSettings, @unchecked Sendable {
    // Set once; both kinds of collector are constants.
    let collector: any MemoryGarbageCollectorSettings & NSObjectProtocol

    public convenience override init() { self.init(garbageCollectorSettings: MemoryEagerGCSetting()) }

    public init(garbageCollectorSettings: any MemoryGarbageCollectorSettings & NSObjectProtocol) {
        collector = garbageCollectorSettings
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? MemoryCacheSettings else { return false }
        return collector.isEqual(other.collector)
    }

    public override var hash: Int { collector.hash }
}

/// Documents go as soon as nothing refers to them.
public final class MemoryEagerGCSetting: NSObject, MemoryGarbageCollectorSettings, Sendable {
    public override init() {}
    public override func isEqual(_ object: Any?) -> Bool { object is MemoryEagerGCSetting }
    public override var hash: Int { 1 }
}

/// Documents that were not used for long go when the cache outgrows its size.
public final class MemoryLRUGCSettings: NSObject, MemoryGarbageCollectorSettings, Sendable {
    let sizeBytes: Int64

    /// 100 MiB.
    public convenience override init() {
        self.init(sizeBytes: NSNumber(value: FirestoreSettings.defaultCacheSizeBytes))
    }

    /// - Parameter sizeBytes: at least 1 MiB, or `FirestoreCacheSizeUnlimited`.
    public init(sizeBytes: NSNumber) {
        orTrap { () throws(Status) in try FirestoreSettings.validate(cacheSizeBytes: sizeBytes.int64Value) }
        self.sizeBytes = sizeBytes.int64Value
    }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? MemoryLRUGCSettings)?.sizeBytes == sizeBytes
    }

    public override var hash: Int { sizeBytes.hashValue }
}
