internal import Foundation

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
