import Glibc
import HearthModel

/// The resources of a `LoggedStore`.
package struct LoggedStoreOptions: Sendable {
    /// Bytes of the active trees' entries after which they are frozen and applied to the base. In a larger table more
    /// changes meet in one page of the base, but it takes longer to apply, and so does a start after a crash.
    package var tableBytes = 16 << 20
    /// The same for a large base: the more pages it has, the fewer changes meet in one. With 500,000 documents of which
    /// commits change five index entries each, 64 MiB write half as many bytes as 16.
    package var tableBytesOfLargeBase = 64 << 20
    /// Bytes of the base for each of the table.
    package var baseBytesPerTableByte = 8
    /// Writes wait for the applier when the active trees, or the log, have this many times as many.
    package var tablesMax = 4
    /// Bytes of the log after which the trees are frozen as well: the same keys may be written again and again.
    package var logBytes = 64 << 20
    /// A range that is deleted is one entry of the table when it has so many keys and tombstones; fewer are deleted one by
    /// one.
    package var rangeKeysMin = 16
    /// One transaction of the base that an application makes.
    package var sliceEntries = 4000
    package var sliceBytes = 2 << 20
    /// A write before that limit waits this long at most, or as long as the write before it would take at this speed.
    package var delayMicrosecondsMax = 50_000
    package var delayedBytesPerMicrosecond = 16
    /// Without writes for so long, everything is applied.
    package var idleMilliseconds = 1000
    /// Without writes for so long, the log's files are removed.
    package var emptyMilliseconds = 60_000
    /// How long after a failure the disk is tried again.
    package var retryMilliseconds = 1000
    package var segments = LogSegmentSizes()
    package var appliers = LogAppliers.process
    package var budget = TableBudget.process
    /// Leaves the files unchanged; `write` fails.
    package var isReadOnly = false
    /// Opens a store whose log is missing, without the commits that only the log had. Otherwise that is DATA_LOSS.
    package var acceptsLostLog = false
    package var observer: (any StoreObserver)?
    /// Delays a write; tests count instead.
    var pause: @Sendable (_ microseconds: Int) -> Void = { usleep(UInt32($0)) }
    /// Waits between parts of an application; see `ApplicationPace`.
    var rest: @Sendable (_ microseconds: Int) -> Void = { usleep(UInt32($0)) }

    package init() {}

    /// Bytes of a table that is frozen.
    func tableBytes(baseBytes: Int?) -> Int {
        max(tableBytes, min(tableBytesOfLargeBase, (baseBytes ?? 0) / baseBytesPerTableByte))
    }
}
