import HearthModel

/// Which documents are in which active view or limbo set.
final class ViewReferences: LocalViewReferences {
    private var keysOfTarget: [Int32: Set<ResourcePath>] = [:]
    private var countOfKey: [ResourcePath: Int] = [:]

    var isEmpty: Bool { countOfKey.isEmpty }

    func contains(_ key: ResourcePath) -> Bool { countOfKey[key] != nil }
    func keys(of targetID: Int32) -> Set<ResourcePath> { keysOfTarget[targetID] ?? [] }

    func add(_ key: ResourcePath, to targetID: Int32) {
        if keysOfTarget[targetID, default: []].insert(key).inserted { countOfKey[key, default: 0] += 1 }
    }

    func remove(_ key: ResourcePath, from targetID: Int32) {
        if keysOfTarget[targetID]?.remove(key) != nil { forget(key) }
    }

    /// Returns the keys that the target had.
    func removeAll(of targetID: Int32) -> Set<ResourcePath> {
        let keys = keysOfTarget.removeValue(forKey: targetID) ?? []
        for key in keys { forget(key) }
        return keys
    }

    private func forget(_ key: ResourcePath) {
        guard let count = countOfKey[key] else { return }
        countOfKey[key] = count > 1 ? count - 1 : nil
    }
}
