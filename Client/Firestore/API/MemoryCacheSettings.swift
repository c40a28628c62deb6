public import Foundation

/// A cache in memory, which ends with the program.
public final class MemoryCacheSettings: NSObject, LocalCacheSettings, @unchecked Sendable {
    // Never changes after initialization; both kinds of collector are immutable.
    let collector: any MemoryGarbageCollectorSettings & NSObjectProtocol

    /// A cache that removes documents as soon as nothing refers to them.
    public convenience override init() { self.init(garbageCollectorSettings: MemoryEagerGCSetting()) }

    /// A cache that removes documents as the given settings say.
    /// - Parameter garbageCollectorSettings: `MemoryEagerGCSetting` or `MemoryLRUGCSettings`.
    public init(garbageCollectorSettings: any MemoryGarbageCollectorSettings & NSObjectProtocol) {
        collector = garbageCollectorSettings
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? MemoryCacheSettings else { return false }
        return collector.isEqual(other.collector)
    }

    public override var hash: Int { collector.hash }
}
