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
    /// `async` calls need none.
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

/// The settings of an instance as comparable values.
struct ResolvedSettings: Sendable, Equatable {
    enum Cache: Sendable, Equatable {
        case memoryEager
        case memoryLRU(sizeBytes: Int64)
        /// - Parameter folder: nil for the user's data directory.
        case persistent(folder: String?, sizeBytes: Int64)

        init(_ settings: any LocalCacheSettings & NSObjectProtocol) {
            switch settings {
            case let settings as PersistentCacheSettings:
                self = .persistent(folder: settings.directory?.path, sizeBytes: settings.sizeBytes)
            case let settings as MemoryCacheSettings:
                if let lru = settings.collector as? MemoryLRUGCSettings {
                    self = .memoryLRU(sizeBytes: lru.sizeBytes)
                } else {
                    self = .memoryEager
                }
            default:
                fatalError("FirebaseFirestore: cacheSettings must be PersistentCacheSettings or MemoryCacheSettings.")
            }
        }
    }

    var host: String
    var isSSLEnabled: Bool
    var tls: TLSSettings
    var dispatchQueue: DispatchQueue
    /// nil: `isPersistenceEnabled` and `cacheSizeBytes` apply.
    var chosenCache: Cache?
    var isPersistenceEnabled: Bool
    var cacheSizeBytes: Int64

    var cache: Cache {
        chosenCache ?? (isPersistenceEnabled ? .persistent(folder: nil, sizeBytes: cacheSizeBytes) : .memoryEager)
    }

    /// The settings in the user's form.
    var settings: FirestoreSettings {
        let settings = FirestoreSettings()
        settings.host = host
        settings.isSSLEnabled = isSSLEnabled
        settings.tls = tls
        settings.dispatchQueue = dispatchQueue
        settings.isPersistenceEnabled = isPersistenceEnabled
        settings.cacheSizeBytes = cacheSizeBytes
        switch chosenCache {
        case nil: break
        case .memoryEager?: settings.cacheSettings = MemoryCacheSettings()
        case .memoryLRU(let size)?:
            settings.cacheSettings = MemoryCacheSettings(
                garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: NSNumber(value: size)))
        case .persistent(let folder, let size)?:
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: NSNumber(value: size), directory: folder.map { URL(fileURLWithPath: $0, isDirectory: true) })
        }
        return settings
    }

    /// The server's address.
    /// - Parameter environment: `FIRESTORE_EMULATOR_HOST` replaces the default host, and no other.
    func server(environment: [String: String]) -> (host: String, isSSLEnabled: Bool) {
        if host == FirestoreSettings.defaultHost, let emulator = environment["FIRESTORE_EMULATOR_HOST"],
            !emulator.isEmpty
        {
            return (emulator, false)
        }
        return (host, isSSLEnabled)
    }

    var isPersistent: Bool {
        if case .persistent = cache { true } else { false }
    }

    static func == (left: ResolvedSettings, right: ResolvedSettings) -> Bool {
        left.host == right.host && left.isSSLEnabled == right.isSSLEnabled && left.tls == right.tls
            && left.cache == right.cache
            && (left.dispatchQueue === right.dispatchQueue || (left.usesMainQueue && right.usesMainQueue))
    }

    /// On Linux `DispatchQueue.main` is a new object at each call. The system's label identifies it.
    var usesMainQueue: Bool { dispatchQueue.label == DispatchQueue.main.label }
}
