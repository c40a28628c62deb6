public import Foundation
internal import HearthModel

/// A cache in a file, which survives a restart of the program. When it exceeds its size, the least recently used
/// documents are removed.
public final class PersistentCacheSettings: NSObject, LocalCacheSettings, Sendable {
    let sizeBytes: Int64
    let directory: URL?

    /// A cache of 100 MiB in the default directory.
    public convenience override init() {
        self.init(sizeBytes: NSNumber(value: FirestoreSettings.defaultCacheSizeBytes))
    }

    /// A cache of a given size in the default directory.
    /// - Parameter sizeBytes: the size in bytes at which documents are removed: at least 1 MiB (1,048,576), or
    ///   `FirestoreCacheSizeUnlimited`. The program ends for any other size.
    public convenience init(sizeBytes: NSNumber) {
        self.init(sizeBytes: sizeBytes, directory: nil)
    }

    /// A cache in a given directory. Apple's library has no such initializer.
    /// - Parameters:
    ///   - sizeBytes: the size in bytes at which documents are removed: at least 1 MiB (1,048,576), or
    ///     `FirestoreCacheSizeUnlimited`. The program ends for any other size.
    ///   - directory: the directory of the cache's files; nil for `firestore` in `$XDG_DATA_HOME`, or in
    ///     `~/.local/share` when that is not set.
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
