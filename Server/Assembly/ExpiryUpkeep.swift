import HearthConcurrency
import HearthDocuments
import HearthFirestoreServer
import HearthHost
import HearthModel
import Synchronization

/// Deletes expired documents from the databases of a server.
///
/// Each open database with a time-to-live policy is looked at once in half a second. For one that is closed it is noted when
/// its next document expires; it is opened then. After a start each database is opened once, since what they know is in
/// them.
///
/// A step of a database on which others commit at the same time is followed by a pause of three times its duration, so that
/// deletions take at most a quarter of the writer's time.
final class ExpiryUpkeep: Sendable {
    static let ticksPerLook = 5

    private struct State {
        /// When the next document of a database expires, in microseconds since 1970.
        var next: [DatabaseName: Int64] = [:]
        /// Until when a database has its pause, in monotonic nanoseconds.
        var pauses: [DatabaseName: UInt64] = [:]
        var opening: Set<DatabaseName> = []
        var deletedCount = 0
        /// Databases whose deletions fail: each failure is logged once.
        var failing: Set<DatabaseName> = []
        var isStopped = false
    }

    private let registry: DatabaseRegistry
    private let threads: LifecycleThreads
    private let clock: any Clock
    private let log: Log
    private let state = Mutex(State())
    private let isRunning = Atomic(false)

    /// - Parameter threads: run the steps; these read from the disk, and wait for nothing else.
    init(registry: DatabaseRegistry, threads: LifecycleThreads, clock: any Clock, log: Log) {
        self.registry = registry
        self.threads = threads
        self.clock = clock
        self.log = log
    }

    /// Looks at all databases, of which an earlier run of the process may have left expired documents.
    func start() {
        threads.run { [weak self] in
            guard let self else { return }
            do throws(Status) {
                openAll(try registry.databases()[...])
            } catch {
                log.error("databases can't be listed for expired documents", ("reason", .string(error.message)))
            }
        }
    }

    /// One after the other, so that others get their openings between them.
    private func openAll(_ names: ArraySlice<DatabaseName>) {
        guard let name = names.first, !state.withLock({ $0.isStopped }) else { return }
        open(name) { [weak self] in
            self?.threads.run { [weak self] in self?.openAll(names.dropFirst()) }
        }
    }

    func stop() { state.withLock { $0.isStopped = true } }

    /// To be called every `Upkeep.tickMilliseconds`.
    func tick(_ count: Int) {
        guard count % Self.ticksPerLook == 0, !isRunning.exchange(true, ordering: .acquiring) else { return }
        threads.run { [self] in
            look()
            isRunning.store(false, ordering: .releasing)
        }
    }

    private func look() {
        let now = clock.monotonicNanoseconds()
        let wanted = registry.openDatabases.filter(\.hasExpiryPolicies)
        let due = state.withLock { state -> (databases: [Database], names: [DatabaseName]) in
            state.pauses = state.pauses.filter { $0.value > now }
            let databases = wanted.filter { state.pauses[$0.name] == nil }
            let time = clock.now().microseconds
            let known = Set(wanted.map(\.name)).union(state.opening)
            return (databases, state.next.filter { $0.value <= time && !known.contains($0.key) }.map(\.key))
        }
        for database in due.databases { step(database) }
        for name in due.names { open(name) {} }
    }

    /// Opens a database, of which the next look takes care.
    private func open(_ name: DatabaseName, _ completion: @escaping @Sendable () -> Void) {
        let mayOpen = state.withLock { $0.isStopped ? false : $0.opening.insert(name).inserted }
        if !mayOpen { return completion() }
        let end: @Sendable (Result<Database?, Status>) -> Void = { [weak self] result in
            guard let self else { return }
            state.withLock { state in
                state.opening.remove(name)
                // What can't be opened is tried again with the next request for it, or after a start.
                if case .success(let database?) = result, database.hasExpiryPolicies { return }
                state.next[name] = nil
            }
            if case .success(let database?) = result, database.hasExpiryPolicies { step(database) }
            completion()
        }
        do throws(Status) {
            // The opening of a missing database would be the first use of a new one.
            guard try registry.exists(name) else { return end(.success(nil)) }
        } catch {
            return end(.failure(error))
        }
        registry.open(name) { result in end(result.map { $0 }) }
    }

    private func step(_ database: Database) {
        if state.withLock({ $0.isStopped }) { return }
        let began = clock.monotonicNanoseconds()
        let commits = database.statistics.commits
        database.deleteExpired { [weak self, weak database] result in
            guard let self, let database else { return }
            switch result {
            case .failure(let status): failed(database.name, status)
            case .success(let step): ended(step, database, began: began, commitsBefore: commits)
            }
        }
    }

    private func ended(_ step: Database.ExpiryStep, _ database: Database, began: UInt64, commitsBefore: Int) {
        let now = clock.monotonicNanoseconds()
        let isAlone = database.statistics.commits - commitsBefore <= step.deletedCount
        let isStopped = state.withLock { state in
            state.deletedCount += step.deletedCount
            state.failing.remove(database.name)
            state.next[database.name] = step.nextExpiry ?? (step.deletedCount > 0 || step.isMore ? 0 : nil)
            if !isAlone { state.pauses[database.name] = now + 3 * (now - began) }
            return state.isStopped
        }
        // Otherwise it goes on with a look.
        guard step.isMore, isAlone, !isStopped else { return }
        threads.run { [weak self, weak database] in
            guard let self, let database else { return }
            self.step(database)
        }
    }

    private func failed(_ name: DatabaseName, _ status: Status) {
        let isNew = state.withLock { $0.failing.insert(name).inserted }
        if !isNew { return }
        log.error(
            "expired documents can't be deleted", ("database", .string(name.string)),
            ("reason", .string(status.message)))
    }

    /// What is known of a database, for tests.
    func nextExpiry(of name: DatabaseName) -> Int64? { state.withLock { $0.next[name] } }

    /// The part of `/metrics`.
    func write(to string: inout MetricsWriter) {
        string.family("hearth_ttl_deletes_total", .counter, "Documents that were deleted because they had expired.")
        string.sample("hearth_ttl_deletes_total", [], state.withLock { $0.deletedCount })
        string.family(
            "hearth_ttl_overdue_seconds", .gauge,
            "For how long the document that has expired first has been waiting for its deletion.")
        let overdue = registry.openDatabases.map(\.expiryOverdueSeconds).max() ?? 0
        string.sample("hearth_ttl_overdue_seconds", [], overdue)
    }
}
