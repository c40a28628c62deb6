import HearthConcurrency
import HearthModel
import Synchronization

/// The connections that snapshots read by.
///
/// An idle reader keeps its read transaction open while it shows the present state, so that the next snapshot costs
/// nothing; after a commit it is renewed when it is taken. What an idle reader keeps open would also keep the WAL from
/// being used again from its start, so the checkpointer releases the idle ones.
final class ReaderPool: @unchecked Sendable {
    // Guards the fields below.
    private let monitor = Monitor()
    private var idle: [Connection] = []
    private var all: [Connection] = []
    private var opening = 0
    private var returns = 0
    private var isClosed = false
    private var closedStatus = Status.unavailable("The database is closed.")

    private let path: String
    private let configuration: [String]
    private let readersMax: Int
    private let isReadOnly: Bool
    private let counters: StoreCounters

    /// Idle readers beyond these are closed: a burst of slow reads shouldn't hold memory for ever.
    private static let idleMax = 16

    init(path: String, options: SQLiteStoreOptions, counters: StoreCounters) {
        self.path = path
        configuration = options.readerConfiguration
        readersMax = options.readersMax
        isReadOnly = options.isReadOnly
        self.counters = counters
    }

    func snapshot() throws(Status) -> SQLiteSnapshot {
        let connection = try take()
        do throws(Status) {
            return SQLiteSnapshot(connection, lease: try connection.beginReading(counters), pool: self)
        } catch {
            discard(connection)
            throw error
        }
    }

    private func take() throws(Status) -> Connection {
        let found = try monitor.withLock { () throws(Status) -> Connection? in
            if isClosed { throw closedStatus }
            if let connection = idle.popLast() { return connection }
            // Callers run on event loops, so they don't wait here.
            if all.count + opening >= readersMax {
                throw .resourceExhausted("Too many reads at a time: \(readersMax) snapshots are open.")
            }
            opening += 1
            return nil
        }
        if let found { return found }
        let opened: Connection
        do throws(Status) {
            opened = try Connection(path: path, configuration: configuration, isReadOnly: isReadOnly)
        } catch {
            monitor.withLock { opening -= 1 }
            throw error
        }
        let closed = monitor.withLock {
            opening -= 1
            if !isClosed { all.append(opened) }
            return isClosed
        }
        if closed {
            opened.close()
            throw monitor.withLock { closedStatus }
        }
        return opened
    }

    /// Ends a snapshot.
    func takeBack(_ connection: Connection, lease: Int) {
        let end = connection.endLease(lease, counters)
        if end == .before { return }
        let kept = monitor.withLock {
            returns += 1
            monitor.signal()
            if isClosed || end == .broken || idle.count >= Self.idleMax { return false }
            idle.append(connection)
            return true
        }
        if !kept { discard(connection) }
    }

    private func discard(_ connection: Connection) {
        connection.close()
        monitor.withLock { all.removeAll { $0 === connection } }
    }

    // MARK: For the checkpointer

    /// Ends the read transactions of idle readers.
    func releaseIdle() {
        monitor.withLock {
            for connection in idle { connection.releasePin() }
        }
    }

    /// How many snapshots were closed so far.
    var returnCount: Int { monitor.withLock { returns } }

    /// Waits until more than `count` snapshots were closed, at most until `deadline`; false when it is over.
    func waitForReturn(after count: Int, until deadline: MonotonicTime) -> Bool {
        monitor.withLock {
            while returns == count {
                if MonotonicTime.now >= deadline { return false }
                monitor.wait(until: deadline)
            }
            return true
        }
    }

    /// Takes the connections away from snapshots whose number is at most `read`.
    func revoke(begunUpTo read: UInt64) {
        // A call that runs is waited for, which is why the pool isn't locked meanwhile.
        let candidates = monitor.withLock { all }
        let revoked = candidates.filter { $0.revoke(begunUpTo: read) }
        if revoked.isEmpty { return }
        monitor.withLock { all.removeAll { reader in revoked.contains { $0 === reader } } }
    }

    func close(because reason: Status) {
        let open = monitor.withLock {
            isClosed = true
            closedStatus = reason
            defer {
                idle = []
                all = []
            }
            return all
        }
        for connection in open { connection.close(because: reason) }
    }
}

/// What the threads of a store tell each other without a lock.
final class StoreCounters: Sendable {
    /// Commits that are visible; raised after the commit and before `write` returns.
    let commits = Atomic<UInt64>(0)
    /// Commits that went to the WAL.
    let appendings = Atomic<UInt64>(0)
    /// Read transactions that were begun.
    let reads = Atomic<UInt64>(0)
    /// Pages in the WAL after the last commit; 0 when a checkpoint made it reusable.
    let walPages = Atomic<Int>(0)
    /// How many of them the last checkpoint has copied, when it wasn't held up.
    let copiedPages = Atomic<Int>(0)
    /// Commits come faster than the disk takes what they wrote to its place.
    let isWriterTooFast = Atomic(false)
}
