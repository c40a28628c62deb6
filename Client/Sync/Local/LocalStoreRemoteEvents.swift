import HearthModel

/// The outcome of storing documents in the cache.
struct StoredDocuments {
    var changed: [ResourcePath: ClientDocument] = [:]
    var existenceChanged: Set<ResourcePath> = []
    var tooEarly: [ResourcePath: ClientDocument] = [:]
}

/// Stores the server's changes in the cache.
extension LocalStore {
    /// Returns the local view of the documents that changed.
    func apply(_ event: RemoteEvent) throws(Status) -> [ResourcePath: ClientDocument] {
        var targetData: [Int32: TargetData] = [:]
        var tooEarly: [ResourcePath: ClientDocument] = [:]
        let documents = try persistence.transaction("Apply a remote event") { () throws(Status) in
            for (targetID, change) in event.targetChanges {
                targetData[targetID] = try apply(change, to: targetID, of: event)
            }
            for targetID in event.quietTargets {
                if let data = try applyQuiet(event, to: targetID) { targetData[targetID] = data }
            }
            for key in event.limboDocumentChanges where event.documentUpdates[key] != nil {
                try persistence.references.limboDocumentTouched(key)
            }
            var renewed = event.renewedDocuments
            if event.snapshotVersion > .none {
                renewed.formUnion(renewedTooEarly.keys.filter { event.documentUpdates[$0] == nil })
            }
            let updates = event.documentUpdates.merging(renewedTooEarly.filter { renewed.contains($0.key) }) {
                news, _ in news
            }
            let stored = try store(updates, renewed: renewed, at: event.snapshotVersion) { _ in event.snapshotVersion }
            tooEarly = stored.tooEarly
            if event.snapshotVersion > .none {
                guard event.snapshotVersion >= targets.lastRemoteSnapshotVersion else {
                    throw .internalError("The server's snapshots went back in time.")
                }
                try targets.setLastRemoteSnapshotVersion(event.snapshotVersion)
            }
            return try view.localView(of: stored.changed, existenceChanged: stored.existenceChanged)
        }
        activeTargets.merge(targetData) { $1 }
        if event.snapshotVersion > .none { renewedTooEarly = tooEarly }
        return documents
    }

    private func applyQuiet(_ event: RemoteEvent, to targetID: Int32) throws(Status) -> TargetData? {
        guard let old = activeTargets[targetID] else { return nil }
        var data = old
        data.sequenceNumber = persistence.currentSequenceNumber
        data.resumeToken = event.tokenOfQuietTargets
        data.snapshotVersion = event.snapshotVersion
        if shouldPersist(data, insteadOf: old, namesDocuments: false) { try targets.update(data) }
        return data
    }

    /// Returns the new target data; nil when the target has no listener any more.
    private func apply(
        _ change: TargetChange, to targetID: Int32, of event: RemoteEvent
    ) throws(Status) -> TargetData? {
        guard let old = activeTargets[targetID] else { return nil }
        try targets.removeKeys(change.removed, from: targetID)
        try targets.addKeys(change.added, to: targetID)
        var data = old
        data.sequenceNumber = persistence.currentSequenceNumber
        let isMismatch = event.targetMismatches[targetID] != nil
        if isMismatch {
            data.resumeToken = []
            data.snapshotVersion = .none
            data.lastLimboFreeVersion = .none
        } else if !change.resumeToken.isEmpty {
            data.resumeToken = change.resumeToken
            data.snapshotVersion = event.snapshotVersion
        }
        if isMismatch || shouldPersist(data, insteadOf: old, namesDocuments: change.namesDocuments) {
            try targets.update(data)
        }
        return data
    }

    /// Storing every token would cost one write per snapshot. Resuming from an older token costs little.
    private func shouldPersist(_ new: TargetData, insteadOf old: TargetData, namesDocuments: Bool) -> Bool {
        if old.resumeToken.isEmpty { return true }
        let ageMax = Self.resumeTokenAgeSecondsMax
        if new.snapshotVersion.seconds - old.snapshotVersion.seconds >= ageMax { return true }
        if new.lastLimboFreeVersion.seconds - old.lastLimboFreeVersion.seconds >= ageMax { return true }
        return namesDocuments
    }

    /// Stores documents in the cache if they are newer. Call it inside a transaction.
    /// - Parameters:
    ///   - renewed: those of the updates that apply although the cache has newer ones, unless the newer ones are from
    ///     after `snapshotVersion`. The effect of an acknowledged write may be lost together with other writes.
    /// - Returns: the documents that changed, as they are in the cache now; those that began or ceased to exist; and
    ///   renewed documents that are older than the cache's version from after `snapshotVersion`.
    func store(
        _ updates: [ResourcePath: ClientDocument], renewed: Set<ResourcePath> = [],
        at snapshotVersion: Timestamp = .none,
        readTime: (ClientDocument) -> Timestamp
    ) throws(Status) -> StoredDocuments {
        var result = StoredDocuments()
        if updates.isEmpty { return result }
        var removed: [ResourcePath] = []
        let cached = try remoteDocuments.documents(Set(updates.keys))
        for (key, document) in updates {
            let old = cached[key] ?? ClientDocument(key: key)
            if document.isFound != old.isFound { result.existenceChanged.insert(key) }
            if document.kind == .missing, document.version == .none {
                // A lookup was denied: the cached state of the document is not valid.
                removed.append(key)
                result.changed[key] = document
            } else if !old.isValid || document.version > old.version
                || document.version == old.version && old.hasPendingWrites
                || document.version < old.version && renewed.contains(key) && old.version <= snapshotVersion
            {
                try remoteDocuments.add(document, readTime: readTime(document))
                result.changed[key] = document
            } else if renewed.contains(key), document.version < old.version {
                result.tooEarly[key] = document
            }
        }
        if !removed.isEmpty { try remoteDocuments.remove(removed) }
        return result
    }

    /// Documents of a view's first state, which come from the cache, stay in it while the view is active. Otherwise a
    /// cache in memory would forget the effect of a write as soon as it is acknowledged, and an answer of the server
    /// from before that write would replace it.
    func retain(_ keys: Set<ResourcePath>, for targetID: Int32) {
        for key in keys { viewReferences.add(key, to: targetID) }
    }

    func notify(_ changes: [ViewChange]) throws(Status) {
        if changes.isEmpty { return }
        var updated: [TargetData] = []
        for change in changes {
            for key in change.added { viewReferences.add(key, to: change.targetID) }
            for key in change.removed { viewReferences.remove(key, from: change.targetID) }
            guard !change.isFromCache, let old = activeTargets[change.targetID] else { continue }
            var data = old
            data.lastLimboFreeVersion = data.snapshotVersion
            activeTargets[change.targetID] = data
            if shouldPersist(data, insteadOf: old, namesDocuments: false) { updated.append(data) }
        }
        // A write that fails now makes the collector's order less exact, and costs a later run some reads.
        try unlessPassing { () throws(Status) in
            try persistence.transaction("Notify of view changes") { () throws(Status) in
                for change in changes {
                    for key in change.removed { try persistence.references.removeReference(key) }
                }
                for data in updated { try targets.update(data) }
            }
        }
    }
}
