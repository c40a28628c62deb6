/// Manages the indexes of the cache. Indexes accelerate queries over many cached documents.
public final class PersistentCacheIndexManager: Sendable, Hashable {
    private let firestore: Firestore

    init(firestore: Firestore) { self.firestore = firestore }

    /// Creates an index automatically when a query reads many more documents than it returns. It is disabled at first.
    public func enableIndexAutoCreation() { firestore.engine.setAutomaticIndexing(true) }

    /// Stops the automatic creation of indexes. Existing indexes remain.
    public func disableIndexAutoCreation() { firestore.engine.setAutomaticIndexing(false) }

    /// Deletes all indexes of the cache.
    public func deleteAllIndexes() { firestore.engine.deleteAllIndexes() }

    public static func == (left: PersistentCacheIndexManager, right: PersistentCacheIndexManager) -> Bool {
        left.firestore === right.firestore
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(firestore)) }
}
