import HearthModel

/// Records when each document was last used. The collector removes the oldest.
final class LRUReferenceDelegate: ReferenceDelegate, LRUCollector {
    private unowned let persistence: MemoryPersistence
    private var sentinels: [ResourcePath: Int64] = [:]
    var localViewReferences: (any LocalViewReferences)?
    var parameters: CollectionParameters

    init(_ persistence: MemoryPersistence, _ parameters: CollectionParameters) {
        self.persistence = persistence
        self.parameters = parameters
    }

    func addReference(_ key: ResourcePath) { touch(key) }
    func removeReference(_ key: ResourcePath) { touch(key) }
    func removeMutationReference(_ key: ResourcePath) { touch(key) }
    func limboDocumentTouched(_ key: ResourcePath) { touch(key) }

    func removeTarget(_ data: TargetData) {
        var data = data
        data.sequenceNumber = persistence.currentSequenceNumber
        persistence.memoryTargets.update(data)
    }

    private func touch(_ key: ResourcePath) { sentinels[key] = persistence.currentSequenceNumber }

    func collect(active: Set<Int32>) -> CollectionOutcome {
        guard parameters.thresholdBytes != CollectionParameters.never,
            persistence.memoryDocuments.size >= parameters.thresholdBytes
        else { return CollectionOutcome(didRun: false) }
        var outcome = CollectionOutcome(didRun: true)
        let targets = persistence.memoryTargets
        var numbers = targets.all.map(\.sequenceNumber)
        numbers += sentinels.filter { !targets.contains($0.key) }.values
        let count = min(numbers.count * parameters.percentile / 100, parameters.sequenceNumbersMax)
        outcome.sequenceNumbersCollected = count
        guard count > 0 else { return outcome }
        let bound = numbers.sorted()[count - 1]
        for data in targets.all where data.sequenceNumber <= bound && !active.contains(data.targetID) {
            targets.remove(data)
            outcome.targetsRemoved += 1
        }
        var orphans: [ResourcePath] = []
        for (key, number) in sentinels where number <= bound && !isPinned(key) { orphans.append(key) }
        for key in orphans { sentinels[key] = nil }
        persistence.memoryDocuments.remove(orphans)
        outcome.documentsRemoved = orphans.count
        return outcome
    }

    private func isPinned(_ key: ResourcePath) -> Bool {
        persistence.memoryTargets.contains(key) || persistence.isMutated(key)
            || localViewReferences?.contains(key) == true
    }
}
