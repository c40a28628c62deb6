import HearthCache
import HearthModel

/// Removes the least recently used documents and targets when the cache has grown over its threshold.
///
/// Freed pages are reused before the file grows. Free pages beyond a small part of the threshold are returned to the
/// system (`incremental_vacuum`), so that the file's size follows its contents.
final class SQLiteCollector: LRUCollector {
    weak var persistence: SQLitePersistence?
    var parameters: CollectionParameters

    /// Free pages that remain in the file for the next writes: the threshold divided by this number.
    private static let freePart: Int64 = 50

    init(thresholdBytes: Int64) { parameters = CollectionParameters(thresholdBytes: thresholdBytes) }

    func collect(active: Set<Int32>) throws(Status) -> CollectionOutcome {
        guard let persistence, parameters.thresholdBytes != CollectionParameters.never,
            try persistence.sizeBytes >= parameters.thresholdBytes
        else { return CollectionOutcome(didRun: false) }
        var numbers = try orphans(persistence).map(\.sequenceNumber)
        try persistence.database.rows("SELECT sequence_number FROM targets") { row in
            numbers.append(row.integer(0))
            return true
        }
        let count = min(numbers.count * parameters.percentile / 100, parameters.sequenceNumbersMax)
        var outcome = CollectionOutcome(didRun: true, sequenceNumbersCollected: count)
        if count > 0 {
            numbers.sort()
            let bound = numbers[count - 1]
            outcome.targetsRemoved = try removeTargets(persistence, upTo: bound, active: active)
            outcome.documentsRemoved = try removeOrphans(persistence, upTo: bound)
        }
        try shrink(persistence)
        return outcome
    }

    /// Documents in no target, with their last use.
    private func orphans(
        _ persistence: SQLitePersistence
    ) throws(Status) -> [(document: Int64, sequenceNumber: Int64)] {
        var orphans: [(document: Int64, sequenceNumber: Int64)] = []
        try persistence.database.rows(
            """
            SELECT document_id, sequence_number FROM sentinels s
            WHERE NOT EXISTS (SELECT 1 FROM target_documents t WHERE t.document_id = s.document_id)
            """
        ) { row in
            orphans.append((row.integer(0), row.integer(1)))
            return true
        }
        return orphans
    }

    private func removeTargets(
        _ persistence: SQLitePersistence, upTo bound: Int64, active: Set<Int32>
    ) throws(Status) -> Int {
        var targets: [Int32] = []
        try persistence.database.rows("SELECT target_id FROM targets WHERE sequence_number <= ?", .integer(bound)) {
            row in
            let id = Int32(truncatingIfNeeded: row.integer(0))
            if !active.contains(id) { targets.append(id) }
            return true
        }
        for target in targets { try persistence.targetCache.drop(target) }
        return targets.count
    }

    private func removeOrphans(_ persistence: SQLitePersistence, upTo bound: Int64) throws(Status) -> Int {
        let database = persistence.database
        let views = persistence.referenceDelegate.localViewReferences
        var removed = 0
        for orphan in try orphans(persistence) where orphan.sequenceNumber <= bound {
            let key = try database.first(
                """
                SELECT key FROM documents WHERE id = ?1
                AND NOT EXISTS (SELECT 1 FROM document_mutations WHERE document_id = ?1)
                AND NOT EXISTS (SELECT 1 FROM overlays WHERE document_id = ?1)
                """, .integer(orphan.document)
            ) { $0.bytes(0) }
            guard let key else { continue }
            if let views, views.contains(try CacheKey.decode(key, in: database)) { continue }
            try database.run("DELETE FROM index_entries WHERE document_id = ?", .integer(orphan.document))
            try database.run("DELETE FROM sentinels WHERE document_id = ?", .integer(orphan.document))
            try database.run("DELETE FROM documents WHERE id = ?", .integer(orphan.document))
            removed += 1
        }
        return removed
    }

    private func shrink(_ persistence: SQLitePersistence) throws(Status) {
        let free = try persistence.database.first("PRAGMA freelist_count") { $0.integer(0) } ?? 0
        let retained = parameters.thresholdBytes / Self.freePart / Int64(CacheSchema.pageSizeBytes)
        if free > retained { try persistence.database.execute("PRAGMA incremental_vacuum(\(free - retained))") }
    }
}
