import HearthModel
import HearthCache

/// The numbers of the cache that are held in memory, and written at the end of a transaction that changed them.
struct CacheGlobals: Equatable {
    var highestTargetID: Int32
    var highestSequenceNumber: Int64
    /// The highest id ever assigned. Ids are not reused after a restart, because index states compare with them.
    var highestBatchID: Int
    var lastSnapshotVersion: Timestamp
    var targetCount: Int
    /// The last record of the journal that was put into the queue: see `WriteJournal`.
    var journalNumber: Int64

    init(_ database: CacheDatabase) throws(Status) {
        let found = try database.first(
            """
            SELECT highest_target_id, highest_sequence_number, highest_batch_id, last_snapshot_version, target_count,
                journal_number
            FROM globals
            """
        ) { row throws(Status) in
            (
                Int32(try database.counter(row.integer(0), max: Int64(Int32.max / 2))),
                try database.counter(row.integer(1)), Int(try database.counter(row.integer(2))), row.time(3),
                Int(try database.counter(row.integer(4))), try database.counter(row.integer(5))
            )
        }
        guard let found else {
            throw database.damaged("The cache \(database.path) is damaged: the row of its globals is missing.")
        }
        (
            highestTargetID, highestSequenceNumber, highestBatchID, lastSnapshotVersion, targetCount, journalNumber
        ) = found
    }

    func save(in database: CacheDatabase) throws(Status) {
        try database.run(
            """
            UPDATE globals SET highest_target_id = ?, highest_sequence_number = ?, highest_batch_id = ?,
                last_snapshot_version = ?, target_count = ?, journal_number = ?
            """, .integer(highestTargetID), .integer(highestSequenceNumber), .integer(highestBatchID),
            .time(lastSnapshotVersion), .integer(targetCount), .integer(journalNumber))
    }
}
