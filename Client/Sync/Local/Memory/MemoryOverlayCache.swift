import HearthModel

/// One user's overlays.
final class MemoryOverlayCache: OverlayCache {
    private var overlays: [ResourcePath: Overlay] = [:]
    private var keysOfBatch: [Int: Set<ResourcePath>] = [:]
    private var keysInCollection: [ResourcePath: Set<ResourcePath>] = [:]

    func overlay(of key: ResourcePath) -> Overlay? { overlays[key] }

    func overlays(of keys: Set<ResourcePath>) -> [ResourcePath: Overlay] {
        var found: [ResourcePath: Overlay] = [:]
        for key in keys { found[key] = overlays[key] }
        return found
    }

    func save(_ mutations: [ResourcePath: Mutation], largestBatchID: Int) {
        for (key, mutation) in mutations {
            if let old = overlays[key] { keysOfBatch[old.largestBatchID]?.remove(key) }
            overlays[key] = Overlay(largestBatchID: largestBatchID, mutation: mutation)
            keysOfBatch[largestBatchID, default: []].insert(key)
            keysInCollection[key.parent, default: []].insert(key)
        }
    }

    func remove(keys: Set<ResourcePath>, batchID: Int) {
        guard let all = keysOfBatch[batchID] else { return }
        for key in all.intersection(keys) {
            overlays[key] = nil
            keysOfBatch[batchID]?.remove(key)
            keysInCollection[key.parent]?.remove(key)
        }
        if keysOfBatch[batchID]?.isEmpty == true { keysOfBatch[batchID] = nil }
    }

    func overlays(inCollection path: ResourcePath, above batchID: Int) -> [ResourcePath: Overlay] {
        var found: [ResourcePath: Overlay] = [:]
        for key in keysInCollection[path] ?? [] {
            if let overlay = overlays[key], overlay.largestBatchID > batchID { found[key] = overlay }
        }
        return found
    }

    func overlays(inGroup collectionID: String, above batchID: Int, count: Int) -> [(
        key: ResourcePath, overlay: Overlay
    )] {
        let all = overlays.filter {
            $0.value.largestBatchID > batchID && UTF8Order.equal($0.key.collectionID, collectionID)
        }
        let sorted = all.map { (key: $0.key, overlay: $0.value) }.sorted { left, right in
            left.overlay.largestBatchID != right.overlay.largestBatchID
                ? left.overlay.largestBatchID < right.overlay.largestBatchID
                : ResourcePath.compare(left.key, right.key) < 0
        }
        guard count > 0, sorted.count > count else { return sorted }
        let last = sorted[count - 1].overlay.largestBatchID
        return Array(sorted.prefix { $0.overlay.largestBatchID <= last })
    }
}
