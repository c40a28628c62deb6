import HearthConcurrency
import HearthModel

/// Documents as the user sees them: remote documents with their overlays applied.
struct LocalDocumentsView {
    /// A document with its overlay applied, and the fields that differ from the remote one (nil: all).
    struct Overlaid {
        var document: ClientDocument
        var changed: Set<FieldPath>?
    }

    let clock: any Clock
    let remoteDocuments: any RemoteDocumentCache
    let queue: any MutationQueue
    let overlays: any OverlayCache
    let indexManager: any IndexManager

    // MARK: By key

    func document(_ key: ResourcePath) throws(Status) -> ClientDocument {
        guard let overlay = try overlays.overlay(of: key) else { return try remoteDocuments.document(key) }
        var document = ClientDocument(key: key)
        if case .patch = overlay.mutation.kind { document = try remoteDocuments.document(key) }
        apply(overlay, to: &document)
        return document
    }

    func documents(_ keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: ClientDocument] {
        try localView(of: try remoteDocuments.documents(keys))
    }

    /// - Parameter existenceChanged: keys of documents that began or ceased to exist. The precondition of a patch may
    ///   hold now and not before, or the reverse.
    func localView(
        of remote: [ResourcePath: ClientDocument], existenceChanged: Set<ResourcePath> = []
    ) throws(Status) -> [ResourcePath: ClientDocument] {
        try overlaid(remote, existenceChanged: existenceChanged).mapValues(\.document)
    }

    func overlaid(
        _ remote: [ResourcePath: ClientDocument], existenceChanged: Set<ResourcePath> = []
    ) throws(Status) -> [ResourcePath: Overlaid] {
        let found = try overlays.overlays(of: Set(remote.keys))
        var result: [ResourcePath: Overlaid] = [:]
        result.reserveCapacity(remote.count)
        var stale: [ResourcePath: ClientDocument] = [:]
        for (key, document) in remote {
            var local = Overlaid(document: document, changed: [])
            let overlay = found[key]
            if existenceChanged.contains(key), overlay == nil || overlay?.mutation.isPatch == true {
                stale[key] = document
                continue
            }
            if let overlay {
                if case .patch(_, let mask) = overlay.mutation.kind {
                    local.changed = Set(mask)
                } else {
                    local.changed = nil
                }
                apply(overlay, to: &local.document)
            }
            result[key] = local
        }
        if !stale.isEmpty { result.merge(try recalculateOverlays(of: stale)) { $1 } }
        return result
    }

    private func apply(_ overlay: Overlay, to document: inout ClientDocument) {
        _ = overlay.mutation.applyLocally(to: &document, changed: [], localWriteTime: clock.now())
    }

    // MARK: Overlays

    /// Recomputes overlays from the pending writes and saves them.
    /// - Parameter onBatches: receives the number of batches that affect a document.
    @discardableResult
    func recalculateOverlays(
        of remote: [ResourcePath: ClientDocument], onBatches: (ResourcePath, Int) -> Void = { _, _ in }
    ) throws(Status) -> [ResourcePath: Overlaid] {
        var result = remote.mapValues { Overlaid(document: $0, changed: []) }
        var largestBatchID: [ResourcePath: Int] = [:]
        var counts: [ResourcePath: Int] = [:]
        for batch in try queue.batches(affecting: Set(remote.keys)) {
            batch.apply(to: &result)
            for key in batch.keys where remote[key] != nil {
                largestBatchID[key] = batch.id
                counts[key, default: 0] += 1
            }
        }
        for (key, count) in counts { onBatches(key, count) }
        var saved: [Int: [ResourcePath: Mutation]] = [:]
        var withoutOverlay: Set<ResourcePath> = []
        for (key, document) in remote {
            guard let local = result[key] else { continue }
            let changed = document.isValid ? local.changed : nil
            if let overlay = Mutation.overlay(for: local.document, changed: changed), let id = largestBatchID[key] {
                saved[id, default: [:]][key] = overlay
            } else {
                withoutOverlay.insert(key)
            }
        }
        for (key, overlay) in try overlays.overlays(of: withoutOverlay) {
            try overlays.remove(keys: [key], batchID: overlay.largestBatchID)
        }
        for (id, mutations) in saved { try overlays.save(mutations, largestBatchID: id) }
        return result
    }

    // MARK: By query

    /// Documents that match the query and changed after the offset; each once, in any order.
    func documents(
        matching query: ClientQuery, after offset: IndexOffset, onRead: (Int) -> Void
    ) throws(Status) -> [ClientDocument] {
        if query.isDocumentQuery {
            let document = try document(query.path)
            return query.matches(document) ? [document] : []
        }
        guard let group = query.collectionGroup else {
            return try documentsInCollection(matching: query, after: offset, onRead: onRead)
        }
        var result: [ClientDocument] = []
        for parent in try indexManager.parents(ofCollectionID: group) where query.path.isPrefix(of: parent) {
            let part = query.inCollection(parent.appending(group))
            result += try documentsInCollection(matching: part, after: offset, onRead: onRead)
        }
        return result
    }

    private func documentsInCollection(
        matching query: ClientQuery, after offset: IndexOffset, onRead: (Int) -> Void
    ) throws(Status) -> [ClientDocument] {
        // Older overlays are needed, too: one may make a document match that changed since.
        let pending = try overlays.overlays(inCollection: query.path, above: MutationBatch.unknownID)
        let documents = try remoteDocuments.documents(
            matching: query, after: offset, mutated: Set(pending.keys), onRead: onRead)
        if pending.isEmpty { return documents }
        // Newer overlays are needed also for documents that did not change.
        var unread = pending.filter { $0.value.largestBatchID > offset.largestBatchID }
        let matcher = ClientQueryMatcher(query)
        var result: [ClientDocument] = []
        result.reserveCapacity(documents.count)
        func take(_ document: ClientDocument, _ overlay: Overlay) {
            var local = document
            apply(overlay, to: &local)
            if matcher.matches(local) { result.append(local) }
        }
        for document in documents {
            if let overlay = pending[document.key] {
                unread[document.key] = nil
                take(document, overlay)
            } else {
                result.append(document)
            }
        }
        // A patch needs the document that it patches; a document that was not found from the start on does not exist.
        let remote = offset == .none ? [:] : try remoteDocuments.documents(Set(unread.keys))
        for (key, overlay) in unread { take(remote[key] ?? ClientDocument(key: key), overlay) }
        return result
    }

    // MARK: For indexes

    /// The next documents of a group after an offset: remote documents in (read time, key) order, then overlaid
    /// documents by batch.
    func nextDocuments(
        ofGroup group: String, after offset: IndexOffset, count: Int
    ) throws(Status) -> (batchID: Int, documents: [ResourcePath: ClientDocument]) {
        var remote: [ResourcePath: ClientDocument] = [:]
        for document in try remoteDocuments.documents(inGroup: group, after: offset, limit: count) {
            remote[document.key] = document
        }
        var batchID = offset.largestBatchID
        if remote.count < count {
            let more = try overlays.overlays(inGroup: group, above: batchID, count: count - remote.count)
            let missing = Set(more.map(\.key)).subtracting(remote.keys)
            remote.merge(try remoteDocuments.documents(missing)) { $1 }
            for (_, overlay) in more { batchID = max(batchID, overlay.largestBatchID) }
        }
        return (batchID, try localView(of: remote))
    }
}

extension Mutation {
    var isPatch: Bool { if case .patch = kind { true } else { false } }
}

extension MutationBatch {
    /// Applies the batch to those of the documents that it affects, in one pass over its mutations.
    func apply(to documents: inout [ResourcePath: LocalDocumentsView.Overlaid]) {
        for mutation in baseMutations { apply(mutation, to: &documents) }
        for mutation in mutations { apply(mutation, to: &documents) }
    }

    private func apply(_ mutation: Mutation, to documents: inout [ResourcePath: LocalDocumentsView.Overlaid]) {
        guard var local = documents[mutation.key] else { return }
        local.changed = mutation.applyLocally(
            to: &local.document, changed: local.changed, localWriteTime: localWriteTime)
        documents[mutation.key] = local
    }
}
