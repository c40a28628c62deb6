public import Foundation
internal import HearthModel

/// The size that never collects. Otherwise a cache has at least 1 MiB.
public let FirestoreCacheSizeUnlimited: Int64 = -1

/// How a Firestore instance reaches its server and keeps its cache. Read when the instance is first used.
public final class FirestoreSettings: NSObject, NSCopying {
    static let defaultHost = "firestore.googleapis.com"
    static let defaultCacheSizeBytes: Int64 = 100 << 20
    static let cacheSizeBytesMin: Int64 = 1 << 20

    /// `host` or `host:port`. When `FIRESTORE_EMULATOR_HOST` names a server, that is used instead of the service, without TLS.
    public var host = FirestoreSettings.defaultHost {
        didSet {
            orTrap { () throws(Status) in
                if host.isEmpty {
                    throw .invalidArgument("Host setting may not be empty. You should generally just use the default.")
                }
            }
        }
    }
    public var isSSLEnabled = true
    /// Ours: whom to trust, and how to show who we are.
    public var tls = TLSSettings()
    /// Runs completion handlers and listeners, one after another. A program whose main queue isn't running (it blocks, say
    /// on a semaphore) needs another one; `async` calls need none.
    public var dispatchQueue = DispatchQueue.main
    /// Deprecated on Apple platforms: counts as long as `cacheSettings` isn't set.
    public var isPersistenceEnabled = true
    /// Deprecated on Apple platforms: counts as long as `cacheSettings` isn't set.
    public var cacheSizeBytes = FirestoreSettings.defaultCacheSizeBytes {
        didSet { orTrap { () throws(Status) in try Self.validate(cacheSizeBytes: cacheSizeBytes) } }
    }
    private var chosenCache: (any LocalCacheSettings & NSObjectProtocol)?

    public var cacheSettings: any LocalCacheSettings & NSObjectProtocol {
        get {
            if let chosenCache { return chosenCache }
            return isPersistenceEnabled
                ? PersistentCacheSettings(sizeBytes: NSNumber(value: cacheSizeBytes)) : MemoryCacheSettings()
        }
        set { chosenCache = newValue }
    }

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

/// Settings as the instance keeps them: values, and comparable.
struct ResolvedSettings: Sendable, Equatable {
    enum Cache: Sendable, Equatable {
        case memoryEager
        case memoryLRU(sizeBytes: Int64)
        /// - Parameter folder: nil for the user's data folder.
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
    /// nil: the two older settings count.
    var chosenCache: Cache?
    var isPersistenceEnabled: Bool
    var cacheSizeBytes: Int64

    var cache: Cache {
        chosenCache ?? (isPersistenceEnabled ? .persistent(folder: nil, sizeBytes: cacheSizeBytes) : .memoryEager)
    }

    /// As the user set them, to be given back.
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

    /// Where to connect to.
    /// - Parameter environment: `FIRESTORE_EMULATOR_HOST` stands for the service's host, and for no other.
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

    /// On Linux `DispatchQueue.main` is a new object at each call: the label, which is the system's, tells it.
    var usesMainQueue: Bool { dispatchQueue.label == DispatchQueue.main.label }
}
