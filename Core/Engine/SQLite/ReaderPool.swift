import HearthConcurrency
import HearthModel
import HearthEngine
import Synchronization

/// The connections that snapshots use.
///
/// An idle reader keeps its read transaction open while it shows the present state, so that the next snapshot costs
/// nothing; after a commit it is renewed when it is taken. The open transaction of an idle reader would also keep the
/// WAL from being restarted, so the checkpointer releases the idle ones.
///
/// Short reads have readers of their own, which long ones never take: see `SnapshotUse`.
final class ReaderPool: @unchecked Sendable {
    // Guards the fields below.
    private let monitor = Monitor()
    private var idle: [Connection] = []
    private var all: [Connection] = []
    /// Open snapshots, by their use; including those that are just being opened.
    private var shortCount = 0
    private var longCount = 0
    private var returns = 0
    private var isClosed = false
    private var closedStatus = Status.unavailable("The database is closed.")

    private let path: String
    private let configuration: [String]
    private let shortMax: Int
    private let longMax: Int
    private let isReadOnly: Bool
    private let counters: StoreCounters
    private let memory: ReaderMemory
    private let images: SQLiteImages

    /// Idle readers beyond these are closed: a burst of slow reads must not hold memory for ever.
    private static let idleMax = 16

    init(path: String, options: SQLiteStoreOptions, counters: StoreCounters) {
        self.path = path
        configuration = options.readerConfiguration
        shortMax = options.readersMax
        longMax = options.longReadersMax
        isReadOnly = options.isReadOnly
        memory = options.readerMemory
        images = options.images
        self.counters = counters
        memory.add(self)
    }

    deinit {
        close(because: .unavailable("The database is closed."))
        memory.remove(ObjectIdentifier(self))
    }

    func snapshot(_ use: SnapshotUse) throws(Status) -> SQLiteSnapshot {
        let connection = try take(use)
        do throws(Status) {
            return SQLiteSnapshot(connection, lease: try connection.beginReading(counters), pool: self, use)
        } catch {
            discard(connection)
            monitor.withLock { count(use, -1) }
            throw error
        }
    }

    /// How many snapshots are open.
    var openCounts: (short: Int, long: Int) { monitor.withLock { (shortCount, longCount) } }

    private func take(_ use: SnapshotUse) throws(Status) -> Connection {
        let found = try monitor.withLock { () throws(Status) -> Connection? in
            if isClosed { throw closedStatus }
            // Callers run on event loops, so they don't wait here.
            if use == .short ? shortCount >= shortMax : longCount >= longMax {
                throw .resourceExhausted(
                    "Too many reads at a time: \(use == .short ? shortMax : longMax) snapshots are open.")
            }
            count(use, 1)
            return idle.popLast()
        }
        if let found { return found }
        do throws(Status) {
            return try open()
        } catch {
            monitor.withLock { count(use, -1) }
            throw error
        }
    }

    private func open() throws(Status) -> Connection {
        guard memory.beginOpening(for: self) else {
            throw .resourceExhausted("Too many reads at a time in all databases.")
        }
        let opened: Connection
        do throws(Status) {
            opened = try Connection(
                path: path, configuration: configuration, isReadOnly: isReadOnly, cache: memory.cache)
        } catch {
            memory.cancelOpening()
            throw error
        }
        memory.add(opened)
        let closed = monitor.withLock {
            if !isClosed { all.append(opened) }
            return isClosed
        }
        if closed {
            close(opened)
            throw monitor.withLock { closedStatus }
        }
        return opened
    }

    private func count(_ use: SnapshotUse, _ change: Int) {
        switch use {
        case .short: shortCount += change
        case .long: longCount += change
        }
    }

    /// A short read becomes a long one.
    func becameLong() {
        monitor.withLock {
            count(.short, -1)
            count(.long, 1)
        }
    }

    /// Ends a snapshot.
    func takeBack(_ connection: Connection, lease: Int, _ use: SnapshotUse) {
        let end = connection.endLease(lease, counters)
        let kept = monitor.withLock {
            count(use, -1)
            // Taken away, or closed with the store.
            if end == .before { return true }
            returns += 1
            monitor.signal()
            if isClosed || end == .broken || idle.count >= Self.idleMax { return false }
            idle.append(connection)
            return true
        }
        if !kept { discard(connection) }
    }

    private func discard(_ connection: Connection) {
        close(connection)
        monitor.withLock { all.removeAll { $0 === connection } }
    }

    private func close(_ connection: Connection, because reason: Status? = nil) {
        connection.close(because: reason)
        memory.remove(connection)
    }

    /// Closes idle readers, to free capacity for other databases or because there are no reads.
    func closeIdle(keeping count: Int) {
        let surplus = monitor.withLock { () -> [Connection] in
            if idle.count <= count { return [] }
            let surplus = Array(idle.dropLast(count))
            idle.removeFirst(surplus.count)
            all.removeAll { reader in surplus.contains { $0 === reader } }
            return surplus
        }
        for connection in surplus { close(connection) }
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

    /// Takes the connections away from snapshots whose number is at most `read`; returns how many there were.
    func revoke(begunUpTo read: UInt64) -> Int {
        // A running call is waited for, so the pool isn't locked meanwhile.
        let candidates = monitor.withLock { all }
        let revoked = candidates.filter { $0.revoke(begunUpTo: read) }
        let count = revoked.count + images.revoke(path)
        if count == 0 { return 0 }
        forget(revoked)
        counters.revokedSnapshots.add(count, ordering: .relaxed)
        return count
    }

    /// Takes a connection away from the snapshot that has this lease; the caller counts it.
    /// - Returns: false when a call is running.
    func revoke(_ connection: Connection, lease: Int) -> Bool {
        guard let isRevoked = connection.revokeUnlessBusy(lease: lease) else { return false }
        if isRevoked { forget([connection]) }
        return true
    }

    private func forget(_ revoked: [Connection]) {
        monitor.withLock { all.removeAll { reader in revoked.contains { $0 === reader } } }
        for connection in revoked { memory.remove(connection) }
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
        for connection in open { close(connection, because: reason) }
    }
}
