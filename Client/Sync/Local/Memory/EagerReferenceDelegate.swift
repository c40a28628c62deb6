import HearthModel

/// Removes documents at the end of the transaction that removes the last reference to them.
final class EagerReferenceDelegate: ReferenceDelegate {
    private unowned let persistence: MemoryPersistence
    private var candidates: Set<ResourcePath> = []
    var localViewReferences: (any LocalViewReferences)?

    init(_ persistence: MemoryPersistence) { self.persistence = persistence }

    func begin() { candidates = [] }

    func commit() throws(Status) {
        let orphans = candidates.filter { !isReferenced($0) }
        candidates = []
        if !orphans.isEmpty { persistence.memoryDocuments.remove(Array(orphans)) }
    }

    func addReference(_ key: ResourcePath) { candidates.remove(key) }
    func removeReference(_ key: ResourcePath) { candidates.insert(key) }
    func removeMutationReference(_ key: ResourcePath) { candidates.insert(key) }
    func limboDocumentTouched(_ key: ResourcePath) { candidates.insert(key) }

    func removeTarget(_ data: TargetData) {
        candidates.formUnion(persistence.memoryTargets.keys(of: data.targetID))
        persistence.memoryTargets.remove(data)
    }

    private func isReferenced(_ key: ResourcePath) -> Bool {
        persistence.memoryTargets.contains(key) || persistence.isMutated(key)
            || localViewReferences?.contains(key) == true
    }
}
