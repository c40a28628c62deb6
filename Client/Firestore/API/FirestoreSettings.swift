public import Foundation
internal import HearthModel

/// The cache size without a limit: no document is removed. Other sizes are at least 1 MiB.
public let FirestoreCacheSizeUnlimited: Int64 = -1

/// The server and the cache of a Firestore instance. They are read when the instance is first used.
public final class FirestoreSettings: NSObject, NSCopying {
    static let defaultHost = "firestore.googleapis.com"
    static let defaultCacheSizeBytes: Int64 = 100 << 20
    static let cacheSizeBytesMin: Int64 = 1 << 20

    /// `host` or `host:port`; not empty. When `FIRESTORE_EMULATOR_HOST` is set, it replaces the default host, and TLS
    /// is not used.
    public var host = FirestoreSettings.defaultHost {
        didSet {
            orTrap { () throws(Status) in
                if host.isEmpty {
                    throw .invalidArgument("Host setting may not be empty. You should generally just use the default.")
                }
            }
        }
    }
    /// Whether connections use TLS; true by default.
    public var isSSLEnabled = true
    /// The trusted authorities and the client's certificate. Apple's library has no such property.
    public var tls = TLSSettings()
    /// The queue of completion handlers and listeners, which run one after another; the main queue by default. A
    /// program whose main queue does not run (for example because it blocks on a semaphore) needs another queue.
    /// `async` calls need none. With another queue, closures in classes of the main actor must be `@Sendable`: the compiler
    /// takes them for closures of the main actor otherwise.
    public var dispatchQueue = DispatchQueue.main
    /// Whether the cache is in a file; true by default. It has no effect when `cacheSettings` is set. Deprecated on
    /// Apple platforms.
    public var isPersistenceEnabled = true
    /// The size of the cache in bytes: at least 1 MiB (1,048,576), or `FirestoreCacheSizeUnlimited`; 100 MiB by
    /// default. It has no effect when `cacheSettings` is set. Deprecated on Apple platforms.
    public var cacheSizeBytes = FirestoreSettings.defaultCacheSizeBytes {
        didSet { orTrap { () throws(Status) in try Self.validate(cacheSizeBytes: cacheSizeBytes) } }
    }
    private var chosenCache: (any LocalCacheSettings & NSObjectProtocol)?

    /// The kind and the size of the cache: `PersistentCacheSettings` (the default) or `MemoryCacheSettings`.
    public var cacheSettings: any LocalCacheSettings & NSObjectProtocol {
        get {
            if let chosenCache { return chosenCache }
            return isPersistenceEnabled
                ? PersistentCacheSettings(sizeBytes: NSNumber(value: cacheSizeBytes)) : MemoryCacheSettings()
        }
        set { chosenCache = newValue }
    }

    /// The default settings.
    public override init() {}

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = FirestoreSettings()
        copy.host = host
        copy.isSSLEnabled = isSSLEnabled
        copy.tls = tls
        copy.dispatchQueue = dispatchQueue
        copy.isPersistenceEnabled = isPersistenceEnabled
        copy.cacheSizeBytes = cacheSizeBytes
        copy.chosenCache = chosenCache
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? FirestoreSettings else { return false }
        return resolved == other.resolved
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(host)
        hasher.combine(isSSLEnabled)
        return hasher.finalize()
    }

    static func validate(cacheSizeBytes size: Int64) throws(Status) {
        guard size == FirestoreCacheSizeUnlimited || size >= cacheSizeBytesMin else {
            throw .invalidArgument(
                "Cache size must be set to at least \(cacheSizeBytesMin) bytes, or to FirestoreCacheSizeUnlimited, but was "
                    + "\(size).")
        }
    }

    var resolved: ResolvedSettings {
        ResolvedSettings(
            host: host, isSSLEnabled: isSSLEnabled, tls: tls, dispatchQueue: dispatchQueue,
            chosenCache: chosenCache.map { ResolvedSettings.Cache($0) }, isPersistenceEnabled: isPersistenceEnabled,
            cacheSizeBytes: cacheSizeBytes)
    }
}
