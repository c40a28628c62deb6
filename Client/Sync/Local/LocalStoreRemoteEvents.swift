import HearthModel

/// What the server sends, into the cache.
extension LocalStore {
    /// Returns the local view of the documents that changed.
    func apply(_ event: RemoteEvent) throws(Status) -> [ResourcePath: ClientDocument] {
        var targetData: [Int32: TargetData] = [:]
        let documents = try persistence.transaction("Apply a remote event") { () throws(Status) in
            for (targetID, change) in event.targetChanges {
                targetData[targetID] = try apply(change, to: targetID, of: event)
            }
            for key in event.limboDocumentChanges where event.documentUpdates[key] != nil {
                try persistence.references.limboDocumentTouched(key)
            }
            let (changed, existenceChanged) = try store(
                event.documentUpdates, renewed: event.renewedDocuments, at: event.snapshotVersion
            ) {
                _ in event.snapshotVersion
            }
            if event.snapshotVersion > .none {
                guard event.snapshotVersion >= targets.lastRemoteSnapshotVersion else {
                    throw .internalError("The server's snapshots went back in time.")
                }
                try targets.setLastRemoteSnapshotVersion(event.snapshotVersion)
            }
            return try view.localView(of: changed, existenceChanged: existenceChanged)
        }
        activeTargets.merge(targetData) { $1 }
        return documents
    }

    /// Returns what is known of the target then; nil when nobody listens to it any more.
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

    /// Writing each token would cost a write for each snapshot; to resume from an older one costs little.
    private func shouldPersist(_ new: TargetData, insteadOf old: TargetData, namesDocuments: Bool) -> Bool {
        if old.resumeToken.isEmpty { return true }
        let ageMax = Self.resumeTokenAgeSecondsMax
        if new.snapshotVersion.seconds - old.snapshotVersion.seconds >= ageMax { return true }
        if new.lastLimboFreeVersion.seconds - old.lastLimboFreeVersion.seconds >= ageMax { return true }
        return namesDocuments
    }

    /// Puts documents into the cache as far as they are news. Inside a transaction.
    /// - Parameters:
    ///   - renewed: those of the updates that count although the cache has newer ones, unless these are from after
    ///     `snapshotVersion`.
    /// - Returns: those that changed, as the cache has them now, and which began or ceased to exist.
    func store(
        _ updates: [ResourcePath: ClientDocument], renewed: Set<ResourcePath> = [],
        at snapshotVersion: Timestamp = .none,
        readTime: (ClientDocument) -> Timestamp
    ) throws(Status) -> (changed: [ResourcePath: ClientDocument], existenceChanged: Set<ResourcePath>) {
        var changed: [ResourcePath: ClientDocument] = [:]
        var existenceChanged: Set<ResourcePath> = []
        if updates.isEmpty { return (changed, existenceChanged) }
        var removed: [ResourcePath] = []
        let cached = try remoteDocuments.documents(Set(updates.keys))
        for (key, document) in updates {
            let old = cached[key] ?? ClientDocument(key: key)
            if document.isFound != old.isFound { existenceChanged.insert(key) }
            if document.kind == .missing, document.version == .none {
                // A lookup that was denied: what the cache has of the document is worth nothing.
                removed.append(key)
                changed[key] = document
            } else if !old.isValid || document.version > old.version
                || document.version == old.version && old.hasPendingWrites
                || document.version < old.version && renewed.contains(key) && !old.hasPendingWrites
                    && old.version <= snapshotVersion
            {
                try remoteDocuments.add(document, readTime: readTime(document))
                changed[key] = document
            }
        }
        if !removed.isEmpty { try remoteDocuments.remove(removed) }
        return (changed, existenceChanged)
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
        // What can't be written now costs the collector some of its order, and a later run some reading.
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
