public import Foundation
internal import HearthModel

/// `PersistentCacheSettings` or `MemoryCacheSettings`.
public protocol LocalCacheSettings {}

/// `MemoryEagerGCSetting` or `MemoryLRUGCSettings`.
public protocol MemoryGarbageCollectorSettings {}

/// Removes documents from the memory cache as soon as nothing refers to them.
public final class MemoryEagerGCSetting: NSObject, MemoryGarbageCollectorSettings, Sendable {
    /// Settings without options.
    public override init() {}
    public override func isEqual(_ object: Any?) -> Bool { object is MemoryEagerGCSetting }
    public override var hash: Int { 1 }
}

/// Removes the least recently used documents when the memory cache exceeds its size.
public final class MemoryLRUGCSettings: NSObject, MemoryGarbageCollectorSettings, Sendable {
    let sizeBytes: Int64

    /// A size of 100 MiB.
    public convenience override init() {
        self.init(sizeBytes: NSNumber(value: FirestoreSettings.defaultCacheSizeBytes))
    }

    /// A given size.
    /// - Parameter sizeBytes: the size in bytes at which documents are removed: at least 1 MiB (1,048,576), or
    ///   `FirestoreCacheSizeUnlimited`. The program ends for any other size.
    public init(sizeBytes: NSNumber) {
        orTrap { () throws(Status) in try FirestoreSettings.validate(cacheSizeBytes: sizeBytes.int64Value) }
        self.sizeBytes = sizeBytes.int64Value
    }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? MemoryLRUGCSettings)?.sizeBytes == sizeBytes
    }

    public override var hash: Int { sizeBytes.hashValue }
}
