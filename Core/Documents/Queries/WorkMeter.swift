import HearthConcurrency
import HearthModel

/// Counts what a query looks at, and stops it when its caller is gone or its time is over.
package final class WorkMeter {
    package private(set) var entriesScanned = 0
    package private(set) var documentsRead = 0
    /// Entries at which it is asked again.
    private var nextCheck = WorkMeter.checkEntries
    private var entriesMax = Int.max
    private var bytesMax = Int.max
    private var bytesRead = 0
    /// Bytes of documents at which it is asked again.
    private var nextCheckBytes = WorkMeter.checkBytes
    /// Lets others go on, whose work waits for the same threads.
    package var giveWay: (() -> Void)?
    /// Asked every few hundred steps, and every few large documents; throws to end the query.
    private let check: () throws(Status) -> Void
    private let memory: MemoryReservation?
    private var heldBytes = 0
    /// Whether the query gives way where it would have to sort more than a few documents: it runs on an event loop.
    package var mayPause = false
    /// It has given way: that there was no next result doesn't say that there are no more. It goes on when it is asked again.
    package var isPaused = false

    package init(check: @escaping () throws(Status) -> Void = {}) {
        self.check = check
        memory = nil
    }

    /// - Parameter memory: for what the query holds while it sorts; it belongs to the meter.
    package init(memory: MemoryReservation?, check: @escaping () throws(Status) -> Void) {
        self.check = check
        self.memory = memory
    }

    private static let checkEntries = 256
    private static let checkBytes = 256 << 10

    // MARK: Brief work

    /// What a query fails with that turns out to be more work than `beBrief` allows.
    package static let isHeavier = Status(.aborted, "The read takes more than some milliseconds.")

    /// From now on only so much may be read as takes some milliseconds: 1,024 entries, and documents of 2 MiB.
    package func beBrief() {
        entriesMax = entriesScanned + Limits.briefEntriesMax
        bytesMax = bytesRead + Limits.briefBytesMax
        nextCheck = min(nextCheck, entriesMax + 1)
    }

    /// Ends what `beBrief` began.
    package func takeTime() {
        entriesMax = .max
        bytesMax = .max
    }

    /// One entry more than may still be read; for counts that aren't charged one by one.
    var entriesMost: Int { entriesMax == .max ? .max : max(0, entriesMax - entriesScanned) + 1 }

    // MARK: Charging

    /// - Parameter bytes: of its content.
    package func chargeDocument(_ bytes: Int) {
        documentsRead += 1
        bytesRead += bytes
        // The next entry asks.
        if bytesRead >= nextCheckBytes || bytesRead > bytesMax { nextCheck = 0 }
    }

    @inline(__always)
    package func chargeEntry() throws(Status) {
        entriesScanned += 1
        if entriesScanned >= nextCheck { try look() }
    }

    /// Entries that were counted together.
    func charge(entries: Int) throws(Status) {
        entriesScanned += entries
        if entriesScanned >= nextCheck { try look() }
    }

    private func look() throws(Status) {
        if entriesScanned > entriesMax || bytesRead > bytesMax { throw Self.isHeavier }
        nextCheck = entriesScanned + Self.checkEntries
        nextCheckBytes = bytesRead + Self.checkBytes
        if entriesMax < nextCheck { nextCheck = entriesMax + 1 }
        try check()
        giveWay?()
    }

    /// How much more is taken than is needed at the moment, because each step has to ask what all share.
    private static let heldStepBytes = 256 << 10

    /// Counts what the query holds from now on.
    /// - Throws: RESOURCE_EXHAUSTED when that is more than the query may hold, or than queries together leave it.
    package func hold(_ bytes: Int) throws(Status) {
        heldBytes += bytes
        if heldBytes > Limits.queryMemoryBytesMax {
            throw .resourceExhausted(
                "The query sorts more than \(Limits.queryMemoryBytesMax) bytes of keys in memory. Add an index for its "
                    + "filters and order, or a limit.")
        }
        guard let memory else { return }
        if heldBytes > memory.bytes {
            if heldBytes <= Self.heldStepBytes / 16 || memory.resize(to: heldBytes + Self.heldStepBytes) { return }
            throw .resourceExhausted(
                "Queries that sort in memory hold more than the server has for them. Add an index for the query's filters "
                    + "and order, or a limit, or try again later.")
        }
    }

    /// Counts what the query doesn't hold any more.
    package func release(_ bytes: Int) {
        heldBytes -= bytes
        if let memory, heldBytes + 2 * Self.heldStepBytes < memory.bytes { memory.resize(to: heldBytes) }
    }
}
