import HearthEngine
import HearthModel
import HearthWire
import Synchronization

/// Brings the entries of a database in line with a changed index catalog.
///
/// First the new catalog is put in force, with new definitions as CREATING: from then on writers maintain their
/// entries. Then the documents concerned are visited in small transactions, and their entries added; at the end the
/// definitions are READY and queries use them. Small transactions also apply changed overrides, and delete the entries
/// of removed definitions: the catalog notes the earlier overrides and the removed definitions until that is done, and
/// a reopened database continues. Each change writes the catalog as a whole, so small indexes share a transaction.
struct IndexBuilder: Sendable {
    let database: Database
    let pipeline: CommitPipeline

    /// Documents that one transaction of a build visits.
    static let stepDocumentsMax = 500
    /// Entries after which such a transaction ends earlier, and entries that one transaction deletes.
    static let stepEntriesMax = 2_000

    /// The effect of a change on a catalog.
    typealias Change =
        @Sendable (IndexCatalog) throws(Status) -> (definitions: [IndexDefinition], overrides: [FieldOverride])

    /// - Parameters:
    ///   - resuming: also builds what an earlier run of the process left unfinished.
    ///   - change: called on the writer's thread for the wanted catalog, so that two changes can't undo each other.
    ///   - installed: called, when the new catalog is in force, with the definitions that will be built.
    ///   - completion: called when all of those are ready.
    func install(
        resuming: Bool, _ change: @escaping Change, installed: @escaping @Sendable ([IndexDefinition]) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let building = SharedBox(Mutex<[IndexDefinition]>([]))
        perform(
            { transaction throws(Status) in
                let old = database.catalog
                let wanted = try change(old)
                let (catalog, added) = try merge(
                    wanted.definitions, wanted.overrides, into: old, resuming: resuming)
                building.value.withLock { $0 = added }
                return catalog
            },
            completion: { result in
                switch result {
                case .failure(let status): completion(.failure(status))
                case .success:
                    let added = building.value.withLock { $0 }
                    installed(added)
                    finishChanges { result in
                        switch result {
                        case .failure(let status): completion(.failure(status))
                        case .success: build(added[...], completion)
                        }
                    }
                }
            })
    }

    /// Runs a step on the writer's thread.
    /// - Parameter step: returns the new catalog when it has changed it. The catalog is stored, and comes into force
    ///   when it is durable, before the next commit.
    private func perform(
        _ step: @escaping @Sendable (any StoreTransaction) throws(Status) -> IndexCatalog?,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let changed = SharedBox(Mutex<IndexCatalog?>(nil))
        pipeline.perform(
            { transaction throws(Status) in
                guard let catalog = try step(transaction) else { return }
                let bytes = CatalogStore.encode(catalog)
                try transaction.put(.meta, CatalogStore.key, bytes)
                changed.value.withLock { $0 = catalog }
                database.currentCatalog.beginChange(to: catalog, bytes)
            },
            completion: { result in
                if let catalog = changed.value.withLock({ $0 }) {
                    if case .success = result {
                        database.currentCatalog.endChange(catalog)
                    } else {
                        database.currentCatalog.endChange(nil)
                    }
                }
                completion(result)
            })
    }

    /// The wanted catalog, with the ids and states of existing definitions.
    private func merge(
        _ definitions: [IndexDefinition], _ overrides: [FieldOverride], into old: IndexCatalog, resuming: Bool
    ) throws(Status) -> (catalog: IndexCatalog, added: [IndexDefinition]) {
        var next = old.nextID
        var known = [IndexIdentity: IndexDefinition](
            old.definitions.map { (IndexIdentity($0), $0) }, uniquingKeysWith: { first, _ in first })
        var taken: Set<IndexIdentity> = []
        var merged: [IndexDefinition] = []
        var added: [IndexDefinition] = []
        for var definition in definitions + IndexCatalog.impliedDefinitions(overrides) {
            let identity = IndexIdentity(definition)
            guard taken.insert(identity).inserted else { continue }
            if let existing = known.removeValue(forKey: identity) {
                merged.append(existing)
                if existing.state == .creating, resuming { added.append(existing) }
            } else {
                definition.id = next
                definition.state = .creating
                next += 1
                merged.append(definition)
                added.append(definition)
            }
        }
        let wanted = IndexCatalog(definitions: merged, overrides: overrides)
        try Self.checkSize(wanted, of: old)
        var changes = old.changes
        for collectionID in wanted.collectionsWithOtherOverrides(old) {
            let earlier = old.overrides(for: collectionID)
            if let index = changes.firstIndex(where: { UTF8Order.equal($0.collectionID, collectionID) }) {
                if changes[index].earlier.count >= Self.changesMax {
                    throw .failedPrecondition(
                        "The indexes of \(collectionID) are being changed. Try again when that is done.")
                }
                changes[index].earlier.append(earlier)
            } else {
                changes.append(IndexCatalog.Change(collectionID: collectionID, earlier: [earlier]))
            }
        }
        let kept = Set(merged.map(\.id))
        let removed = old.removed + old.definitions.filter { !kept.contains($0.id) }
        let catalog = IndexCatalog(
            definitions: merged, overrides: overrides, changes: changes, removed: removed, nextID: next)
        return (catalog, added)
    }

    /// - Throws: RESOURCE_EXHAUSTED when a catalog that grows becomes too large to be written with each change.
    private static func checkSize(_ wanted: IndexCatalog, of old: IndexCatalog) throws(Status) {
        let sizeBytes = CatalogStore.encode(wanted).count
        if sizeBytes <= Limits.indexCatalogSizeBytesMax { return }
        let before = CatalogStore.encode(IndexCatalog(definitions: old.definitions, overrides: old.overrides)).count
        if sizeBytes <= before { return }
        throw .resourceExhausted(
            "The indexes and fields of a database take at most \(Limits.indexCatalogSizeBytesMax >> 20) MiB, with the paths "
                + "of their fields; these would take \(sizeBytes) bytes.")
    }

    /// Changes of one collection's overrides that may be under way at a time.
    private static let changesMax = 16

    // MARK: Building

    /// Cost of a definition besides its documents, in entries.
    private static let workPerIndex = 4

    /// The progress of one transaction.
    private struct Progress {
        /// Definitions that are complete.
        var count = 0
        var ready: Set<UInt32> = []
        /// Where the next transaction continues.
        var position: [UInt8]?
        var wasDeleted = false
    }

    /// Builds definitions, as many in one transaction as fit: the catalog is written once for them.
    private func build(
        _ definitions: ArraySlice<IndexDefinition>, after position: [UInt8]? = nil,
        _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        if definitions.isEmpty { return completion(.success(())) }
        let reached = SharedBox(Mutex(Progress()))
        perform(
            { transaction throws(Status) in
                let progress = try step(definitions, after: position, transaction)
                reached.value.withLock { $0 = progress }
                return progress.ready.isEmpty ? nil : ready(progress.ready)
            },
            completion: { result in
                let progress = reached.value.withLock { $0 }
                let rest = definitions.dropFirst(progress.count)
                switch result {
                case .failure(let status): completion(.failure(status))
                case .success where rest.isEmpty && progress.wasDeleted:
                    completion(.failure(Status(.cancelled, "The index was deleted while it was built.")))
                case .success: build(rest, after: progress.position, completion)
                }
            })
    }

    private func step(
        _ definitions: ArraySlice<IndexDefinition>, after position: [UInt8]?, _ transaction: any StoreTransaction
    ) throws(Status) -> Progress {
        let present = Set(database.catalog.definitions.map(\.id))
        var progress = Progress(position: position)
        var work = 0
        for definition in definitions where work < Self.stepEntriesMax {
            progress.wasDeleted = !present.contains(definition.id)
            if !progress.wasDeleted {
                let only = IndexCatalog(definitions: [definition])
                progress.position = try visit(
                    definition.collectionID, after: progress.position, &work, transaction
                ) { key throws(Status) in try addEntries(key, catalog: only, transaction) }
                if progress.position != nil { break }
                progress.ready.insert(definition.id)
            }
            progress.position = nil
            progress.count += 1
            work += Self.workPerIndex
        }
        return progress
    }

    /// Visits documents of a collection, as many as a transaction may.
    /// - Parameters:
    ///   - work: of the transaction so far, in entries.
    ///   - body: returns the amount of work for a document.
    /// - Returns: the last of them when there may be more.
    private func visit(
        _ collectionID: String, after position: [UInt8]?, _ work: inout Int, _ transaction: any StoreTransaction,
        _ body: ([UInt8]) throws(Status) -> Int
    ) throws(Status) -> [UInt8]? {
        let keys = try Self.documentKeys(
            of: collectionID, after: position, limit: Self.stepDocumentsMax, in: transaction)
        for (index, key) in keys.enumerated() {
            work += try body(key)
            if work >= Self.stepEntriesMax, index + 1 < keys.count { return key }
        }
        return keys.count == Self.stepDocumentsMax ? keys.last : nil
    }

    /// The cost of reading a document, in entries.
    private static func work(ofReading bytes: [UInt8]) -> Int { 1 + bytes.count / 512 }

    private func addEntries(
        _ key: [UInt8], catalog: IndexCatalog, _ transaction: any StoreTransaction
    ) throws(Status) -> Int {
        guard let path = DocumentKey.decode(key), let bytes = try transaction.get(.documents, key) else { return 1 }
        let document = try StoredDocument(stored: bytes)
        var entries = IndexEntries(key: key, path: path, indexes: catalog.indexes(of: path.collectionID))
        entries.addDefinitions(try FieldsCodec.decode(document.fields))
        for entry in entries.entries { try transaction.put(.entries, entry.key, entry.value) }
        return entries.entries.count + Self.work(ofReading: bytes)
    }

    /// The catalog in which some definitions are READY.
    private func ready(_ ids: Set<UInt32>) -> IndexCatalog {
        let catalog = database.catalog
        let definitions = catalog.definitions.map { present in
            var present = present
            if ids.contains(present.id) { present.state = .ready }
            return present
        }
        return IndexCatalog(
            definitions: definitions, overrides: catalog.overrides, changes: catalog.changes, removed: catalog.removed,
            nextID: catalog.nextID)
    }

    // MARK: Overrides

    /// Brings the automatic entries in line with changed overrides, of all collections with such a change, and deletes
    /// the entries of removed definitions.
    func finishChanges(_ completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        guard let change = database.catalog.changes.first else { return finishRemovals(completion) }
        visit(change, after: nil) { result in
            switch result {
            case .failure(let status): completion(.failure(status))
            case .success: finishChanges(completion)
            }
        }
    }

    /// Visits the documents of a collection, a step at a time. Ends early when the overrides change again, because that
    /// change visits all of them again.
    private func visit(
        _ change: IndexCatalog.Change, after position: [UInt8]?,
        _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let reached = SharedBox(Mutex<[UInt8]?>(nil))
        perform(
            { transaction throws(Status) in
                let catalog = database.catalog
                guard catalog.change(of: change.collectionID) == change else { return nil }
                // Only the automatic entries: definitions are built or deleted separately.
                let automatic = IndexCatalog(
                    definitions: [], overrides: catalog.overrides, changes: catalog.changes, removed: [])
                var work = 0
                let next = try visit(
                    change.collectionID, after: position, &work, transaction
                ) { key throws(Status) in try updateEntries(key, catalog: automatic, transaction) }
                reached.value.withLock { $0 = next }
                return next == nil ? finished(change) : nil
            },
            completion: { result in
                switch result {
                case .failure(let status): completion(.failure(status))
                case .success:
                    if let next = reached.value.withLock({ $0 }) {
                        visit(change, after: next, completion)
                    } else {
                        completion(.success(()))
                    }
                }
            })
    }

    private func updateEntries(
        _ key: [UInt8], catalog: IndexCatalog, _ transaction: any StoreTransaction
    ) throws(Status) -> Int {
        guard let path = DocumentKey.decode(key), let bytes = try transaction.get(.documents, key) else { return 1 }
        let fields = try FieldsCodec.decode(StoredDocument(stored: bytes).fields)
        let indexes = catalog.indexes(of: path.collectionID)
        var possible = IndexEntries(key: key, path: path, indexes: indexes, extent: .possible)
        var present = IndexEntries(key: key, path: path, indexes: indexes)
        possible.add(fields)
        present.add(fields)
        let kept = Set(present.entries.map(\.key))
        for entry in possible.entries where !kept.contains(entry.key) { try transaction.delete(.entries, entry.key) }
        for entry in present.entries { try transaction.put(.entries, entry.key, entry.value) }
        return possible.entries.count + present.entries.count + Self.work(ofReading: bytes)
    }

    /// The catalog without a completed change.
    private func finished(_ change: IndexCatalog.Change) -> IndexCatalog {
        let catalog = database.catalog
        return IndexCatalog(
            definitions: catalog.definitions, overrides: catalog.overrides,
            changes: catalog.changes.filter { $0 != change }, removed: catalog.removed, nextID: catalog.nextID)
    }

    // MARK: Removals

    private func finishRemovals(_ completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        if database.catalog.removed.isEmpty { return completion(.success(())) }
        perform(
            { transaction throws(Status) in
                let catalog = database.catalog
                var left = Self.stepEntriesMax
                var gone: Set<UInt32> = []
                // Two callers that remove at the same time share the work.
                for definition in catalog.removed where left > 0 {
                    let range = KeyRange(prefix: IndexKey.idPrefix(definition))
                    let deleted = try transaction.delete(.entries, range, limit: left)
                    if deleted == left { break }
                    gone.insert(definition.id)
                    left -= deleted + Self.workPerIndex
                }
                return gone.isEmpty ? nil : forgotten(gone)
            },
            completion: { result in
                switch result {
                case .failure(let status): completion(.failure(status))
                case .success: finishRemovals(completion)
                }
            })
    }

    /// The catalog without removed definitions that have no entries left.
    private func forgotten(_ ids: Set<UInt32>) -> IndexCatalog {
        let catalog = database.catalog
        return IndexCatalog(
            definitions: catalog.definitions, overrides: catalog.overrides, changes: catalog.changes,
            removed: catalog.removed.filter { !ids.contains($0.id) }, nextID: catalog.nextID)
    }

    /// The documents of all collections with an id, root collection first.
    static func documentKeys(
        of collectionID: String, after position: [UInt8]?, limit: Int, in snapshot: any Snapshot
    ) throws(Status) -> [[UInt8]] {
        let rootPrefix = DocumentKey.collectionPrefix(ResourcePath([collectionID]))
        var keys: [[UInt8]] = []
        var nestedAfter: [UInt8]?
        if position == nil || position!.starts(with: rootPrefix) {
            var range = KeyRange(prefix: rootPrefix)
            if let position { range.lower = position + [0] }
            let cursor = try snapshot.scan(.documents, range, reverse: false, values: false)
            defer { cursor.close() }
            while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        } else {
            nestedAfter = position.flatMap(DocumentKey.toPathKey)
        }
        let nestedPrefix = IndexKey.groupNamePrefix(collectionID)
        var range = KeyRange(prefix: nestedPrefix)
        if let nestedAfter { range.lower = nestedPrefix + nestedAfter + [0] }
        let cursor = try snapshot.scan(.entries, range, reverse: false, values: false)
        defer { cursor.close() }
        while keys.count < limit, try cursor.next() {
            if let key = DocumentKey.fromPathKey(Array(cursor.key.dropFirst(nestedPrefix.count))) { keys.append(key) }
        }
        return keys
    }
}
