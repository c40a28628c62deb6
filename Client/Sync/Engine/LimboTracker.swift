import HearthModel

/// Tracks which documents are in limbo, and which of them are being looked up at the server.
final class LimboTracker {
    struct Resolution {
        var key: ResourcePath
        /// The server named the document for the lookup's target.
        var isReceived = false
    }

    private let resolutionsMax: Int
    private let references = ViewReferences()
    private var resolutions: [Int32: Resolution] = [:]
    private var targetIDs: [ResourcePath: Int32] = [:]
    private var nextTargetID: Int32 = 1
    /// In order. An entry whose ticket is no longer in `tickets` was removed.
    private var queue: ArraySlice<(ticket: Int, key: ResourcePath)> = []
    private var tickets: [ResourcePath: Int] = [:]
    private var nextTicket = 0

    init(resolutionsMax: Int) { self.resolutionsMax = resolutionsMax }

    var active: [ResourcePath: Int32] { targetIDs }
    var enqueued: Set<ResourcePath> { Set(tickets.keys) }

    func resolution(_ targetID: Int32) -> Resolution? { resolutions[targetID] }

    func addReference(_ key: ResourcePath, from targetID: Int32) {
        references.add(key, to: targetID)
        guard targetIDs[key] == nil, tickets[key] == nil else { return }
        tickets[key] = nextTicket
        queue.append((nextTicket, key))
        nextTicket += 1
    }

    /// Returns the lookup that is no longer needed.
    func removeReference(_ key: ResourcePath, from targetID: Int32) -> Int32? {
        references.remove(key, from: targetID)
        return dropIfUnreferenced(key)
    }

    /// Returns the lookups that are no longer needed.
    func removeReferences(of targetID: Int32) -> [Int32] {
        let keys = references.removeAll(of: targetID).sorted { ResourcePath.compare($0, $1) < 0 }
        return keys.compactMap { dropIfUnreferenced($0) }
    }

    private func dropIfUnreferenced(_ key: ResourcePath) -> Int32? {
        if references.contains(key) { return nil }
        tickets[key] = nil
        guard let targetID = targetIDs[key] else { return nil }
        _ = end(targetID)
        return targetID
    }

    /// Ends a lookup. Returns nil when the target is not a lookup.
    func end(_ targetID: Int32) -> Resolution? {
        guard let resolution = resolutions.removeValue(forKey: targetID) else { return nil }
        targetIDs[resolution.key] = nil
        return resolution
    }

    /// The next lookup to start, if the limit allows another one.
    func startNext() -> (targetID: Int32, key: ResourcePath)? {
        while resolutions.count < resolutionsMax, let (ticket, key) = queue.popFirst() {
            guard tickets[key] == ticket else { continue }
            tickets[key] = nil
            let targetID = nextTargetID
            nextTargetID += 2
            resolutions[targetID] = Resolution(key: key)
            targetIDs[key] = targetID
            return (targetID, key)
        }
        return nil
    }

    func note(_ changes: [Int32: TargetChange]) {
        for (targetID, change) in changes where resolutions[targetID] != nil {
            if !change.added.isEmpty { resolutions[targetID]?.isReceived = true }
            if !change.removed.isEmpty { resolutions[targetID]?.isReceived = false }
        }
    }
}
