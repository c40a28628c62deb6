import HearthConcurrency
import HearthModel
import HearthEngine

/// The work of one transaction in the background.
package struct Slice {
    private let bounds: SliceBounds
    private let end: MonotonicTime
    private var records = 0
    private var bytes = 0
    private(set) var isFull = false

    init(_ bounds: SliceBounds) {
        self.bounds = bounds
        end = MonotonicTime.now.advanced(milliseconds: bounds.milliseconds)
    }

    var recordsLeft: Int { max(0, bounds.recordsMax - records) }

    /// Whether the time is over, too.
    mutating func readClock() {
        if MonotonicTime.now >= end { isFull = true }
    }

    /// Counts a written record of a number of bytes.
    mutating func add(_ size: Int) {
        bytes += size
        add(records: 1)
    }

    /// Deletes records of a range until the slice is full. Strings are deleted a few at a time, and the clock is read
    /// between: each may be very long, and the store visits all of it.
    mutating func delete(
        _ keyspace: Keyspace, _ range: KeyRange, in transaction: any StoreTransaction
    ) throws(Status) {
        while !isFull {
            let limit = keyspace == .documents ? min(Self.stringsAtATime, recordsLeft) : recordsLeft
            let count = try transaction.delete(keyspace, range, limit: limit)
            add(records: count)
            if count < limit { return }
            if MonotonicTime.now >= end { isFull = true }
        }
    }

    static let stringsAtATime = 4

    mutating func add(records count: Int) {
        let before = records
        records += count
        if records >= bounds.recordsMax || bytes >= bounds.bytesMax {
            isFull = true
        } else if before / 64 != records / 64, MonotonicTime.now >= end {
            isFull = true
        }
    }
}

/// The limits of one transaction of background work.
struct SliceBounds: Sendable {
    var recordsMax = Limits.treeSliceRecordsMax
    var bytesMax = Limits.treeSliceBytesMax
    var milliseconds = Limits.treeSliceMilliseconds
}
