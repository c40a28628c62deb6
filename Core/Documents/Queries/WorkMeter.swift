import HearthConcurrency
import HearthModel

/// Counts the work of a query, and stops it when its caller has disconnected or its time is over.
package final class WorkMeter {
    package private(set) var entriesScanned = 0
    package private(set) var documentsRead = 0
    /// Entries after which `check` is called again.
    private var nextCheck = WorkMeter.checkEntries
    private var entriesMax = Int.max
    private var bytesMax = Int.max
    private var bytesRead = 0
    /// Bytes of documents after which `check` is called again.
    private var nextCheckBytes = WorkMeter.checkBytes
    /// Lets other work continue that waits for the same threads.
    package var giveWay: (() -> Void)?
    /// Called every few hundred steps, and every few large documents; throws to end the query.
    private let check: () throws(Status) -> Void
    private let memory: MemoryReservation?
    private var heldBytes = 0
    /// Whether the query yields where it would have to sort more than a few documents: it runs on an event loop.
    package var mayPause = false
    /// The query has yielded: the absence of a next result does not mean that there are no more. It continues with the
    /// next call.
    package var isPaused = false

    package init(check: @escaping () throws(Status) -> Void = {}) {
        self.check = check
        memory = nil
    }

    /// - Parameter memory: for the data that the query holds while it sorts; it belongs to the meter.
    package init(memory: MemoryReservation?, check: @escaping () throws(Status) -> Void) {
        self.check = check
        self.memory = memory
    }

    private static let checkEntries = 256
    private static let checkBytes = 256 << 10

    // MARK: Brief work

    /// The error of a query that needs more work than `beBrief` allows.
    package static let isHeavier = Status(.aborted, "The read takes more than some milliseconds.")

    /// From here on the query may read only some milliseconds' worth: 1,024 entries, and documents of 2 MiB.
    package func beBrief() {
        entriesMax = entriesScanned + Limits.briefEntriesMax
        bytesMax = bytesRead + Limits.briefBytesMax
        nextCheck = min(nextCheck, entriesMax + 1)
    }

    /// Ends the effect of `beBrief`.
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
        // The next entry calls it.
        if bytesRead >= nextCheckBytes || bytesRead > bytesMax { nextCheck = 0 }
    }

    @inline(__always)
    package func chargeEntry() throws(Status) {
        entriesScanned += 1
        if entriesScanned >= nextCheck { try checkBounds() }
    }

    /// Entries that were counted together.
    func charge(entries: Int) throws(Status) {
        entriesScanned += entries
        if entriesScanned >= nextCheck { try checkBounds() }
    }

    private func checkBounds() throws(Status) {
        if entriesScanned > entriesMax || bytesRead > bytesMax { throw Self.isHeavier }
        nextCheck = entriesScanned + Self.checkEntries
        nextCheckBytes = bytesRead + Self.checkBytes
        if entriesMax < nextCheck { nextCheck = entriesMax + 1 }
        try check()
        giveWay?()
    }

    /// How much more is reserved than is needed at the moment, because each reservation must use the shared budget.
    private static let heldStepBytes = 256 << 10

    /// Counts memory that the query holds from now on.
    /// - Throws: RESOURCE_EXHAUSTED when that is more than the query may hold, or than all queries together leave.
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

    /// Uncounts memory that the query has released.
    package func release(_ bytes: Int) {
        heldBytes -= bytes
        if let memory, heldBytes + 2 * Self.heldStepBytes < memory.bytes { memory.resize(to: heldBytes) }
    }
}
