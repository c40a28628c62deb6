import HearthModel

final class MemoryTargetCache: TargetCache {
    weak var references: (any ReferenceDelegate)?
    private var targets: [Int32: TargetData] = [:]
    private var idsOfCanonicalID: [String: [Int32]] = [:]
    private var keysOfTarget: [Int32: Set<ResourcePath>] = [:]
    private var targetCountOfKey: [ResourcePath: Int] = [:]
    private(set) var highestTargetID: Int32 = 0
    private(set) var highestSequenceNumber: Int64 = 0
    private(set) var lastRemoteSnapshotVersion = Timestamp.none

    var count: Int { targets.count }
    var all: [TargetData] { Array(targets.values) }

    func setLastRemoteSnapshotVersion(_ version: Timestamp) { lastRemoteSnapshotVersion = version }

    func add(_ data: TargetData) {
        idsOfCanonicalID[data.target.canonicalID, default: []].append(data.targetID)
        update(data)
    }

    func update(_ data: TargetData) {
        targets[data.targetID] = data
        highestTargetID = max(highestTargetID, data.targetID)
        highestSequenceNumber = max(highestSequenceNumber, data.sequenceNumber)
    }

    func remove(_ data: TargetData) {
        removeAllKeys(of: data.targetID)
        guard targets.removeValue(forKey: data.targetID) != nil else { return }
        let id = data.target.canonicalID
        idsOfCanonicalID[id]?.removeAll { $0 == data.targetID }
        if idsOfCanonicalID[id]?.isEmpty == true { idsOfCanonicalID[id] = nil }
    }

    func target(_ target: ClientTarget) -> TargetData? {
        for id in idsOfCanonicalID[target.canonicalID] ?? [] {
            if let data = targets[id], data.target == target { return data }
        }
        return nil
    }

    func addKeys(_ keys: Set<ResourcePath>, to targetID: Int32) throws(Status) {
        for key in keys {
            if keysOfTarget[targetID, default: []].insert(key).inserted { targetCountOfKey[key, default: 0] += 1 }
            try references?.addReference(key)
        }
    }

    func removeKeys(_ keys: Set<ResourcePath>, from targetID: Int32) throws(Status) {
        for key in keys {
            if keysOfTarget[targetID]?.remove(key) != nil { forget(key) }
            try references?.removeReference(key)
        }
    }

    func removeAllKeys(of targetID: Int32) {
        for key in keysOfTarget.removeValue(forKey: targetID) ?? [] { forget(key) }
    }

    func keys(of targetID: Int32) -> Set<ResourcePath> { keysOfTarget[targetID] ?? [] }
    func contains(_ key: ResourcePath) -> Bool { targetCountOfKey[key] != nil }

    func forEach(_ body: (TargetData) -> Void) {
        for data in targets.values { body(data) }
    }

    private func forget(_ key: ResourcePath) {
        guard let count = targetCountOfKey[key] else { return }
        targetCountOfKey[key] = count > 1 ? count - 1 : nil
    }
}
