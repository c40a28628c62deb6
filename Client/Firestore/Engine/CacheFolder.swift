internal import Foundation
internal import HearthModel

/// The default folder of caches.
enum CacheFolder {
    static func standard(environment: [String: String]) throws(Status) -> String {
        if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/firestore" }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw .failedPrecondition(
                "There is no location for the cache: neither XDG_DATA_HOME nor HOME is set. Set one, name a folder with "
                    + "PersistentCacheSettings(sizeBytes:directory:), or use MemoryCacheSettings.")
        }
        return home + "/.local/share/firestore"
    }
}
