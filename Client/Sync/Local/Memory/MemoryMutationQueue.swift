import HearthModel

/// One user's pending writes, in the order of their ids.
final class MemoryMutationQueue: MutationQueue {
    private unowned let persistence: MemoryPersistence
    private var batches: ArraySlice<MutationBatch> = []
    private var ids: [ResourcePath: [Int]] = [:]
    private(set) var stream = StreamResumption()

    init(_ persistence: MemoryPersistence) { self.persistence = persistence }

    var isEmpty: Bool { batches.isEmpty }
    var count: Int { batches.count }
    var allBatches: [MutationBatch] { Array(batches) }
    var highestUnacknowledgedBatchID: Int { batches.last?.id ?? MutationBatch.unknownID }

    func setStream(_ stream: StreamResumption) { self.stream = stream }
    func setStreamToken(_ token: [UInt8]) { stream.token = token }

    func add(localWriteTime: Timestamp, base: [Mutation], mutations: [Mutation]) -> MutationBatch {
        let batch = MutationBatch(
            id: persistence.nextBatchID, localWriteTime: localWriteTime, baseMutations: base, mutations: mutations)
        persistence.nextBatchID += 1
        batches.append(batch)
        for key in batch.keys { ids[key, default: []].append(batch.id) }
        return batch
    }

    func batch(_ id: Int) -> MutationBatch? {
        guard let batch = nextBatch(after: id - 1), batch.id == id else { return nil }
        return batch
    }

    func nextBatch(after id: Int) -> MutationBatch? {
        var low = batches.startIndex
        var high = batches.endIndex
        while low < high {
            let middle = (low + high) / 2
            if batches[middle].id <= id { low = middle + 1 } else { high = middle }
        }
        return low < batches.endIndex ? batches[low] : nil
    }

    func batches(affecting keys: Set<ResourcePath>) -> [MutationBatch] {
        var found: Set<Int> = []
        for key in keys { found.formUnion(ids[key] ?? []) }
        return found.sorted().compactMap { batch($0) }
    }

    func remove(_ batch: MutationBatch) throws(Status) {
        guard batches.first?.id == batch.id else {
            throw .internalError("Batch \(batch.id) is not the first of the queue.")
        }
        batches.removeFirst()
        for key in batch.keys {
            ids[key]?.removeAll { $0 == batch.id }
            if ids[key]?.isEmpty == true { ids[key] = nil }
            try persistence.references.removeMutationReference(key)
        }
    }

    func contains(_ key: ResourcePath) -> Bool { ids[key] != nil }
}
