import HearthBackup
import HearthHost
import HearthFirestoreServer
import HearthRealtimeServer
import HearthConcurrency
import HearthModel
import HearthDocuments
import Synchronization

/// The periodic work of a server.
///
/// Leases and expiry of transactions have a thread of their own, which never waits for a disk; the rest (files of rules and of the
/// certificate, unused databases, old versions) has another. No event loop does any of it.
final class Upkeep: Sendable {
    static let tickMilliseconds = 100
    private static let ticksPerUpkeep = 10
    private static let ticksPerCollection = 600
    /// A database without a store that nobody uses is closed after this.
    private static let deferredIdleNanoseconds: UInt64 = 1_000_000_000

    private let stores: Stores
    private let registry: DatabaseRegistry
    private let realtime: RealtimeService
    private let rules: RulesFiles
    private let certificate: CertificateFiles?
    private let openStores: OpenStores
    private let triggers: Triggers
    private let backups: BackupSchedule?
    private let threads: LifecycleThreads
    private let once: OnceUpkeep
    /// Nil when expired documents stay.
    private let expiry: ExpiryUpkeep?
    private let clock: any Clock
    private let isRunning = Atomic(false)
    private let isCollectionDue = Atomic(false)

    init(
        stores: Stores, registry: DatabaseRegistry, realtime: RealtimeService, rules: RulesFiles,
        certificate: CertificateFiles?,
        openStores: OpenStores, triggers: Triggers, backups: BackupSchedule?, threads: LifecycleThreads,
        onceCollection: String, expiry: ExpiryUpkeep?, clock: any Clock = SystemClock()
    ) {
        self.stores = stores
        self.registry = registry
        self.realtime = realtime
        self.rules = rules
        self.certificate = certificate
        self.openStores = openStores
        self.triggers = triggers
        self.backups = backups
        self.threads = threads
        once = OnceUpkeep(collection: onceCollection, threads: threads)
        self.expiry = expiry
        self.clock = clock
    }

    /// Must be called every `tickMilliseconds`.
    func tick(_ count: Int) {
        registry.tick()
        expiry?.tick(count)
        if count % Self.ticksPerCollection == Self.ticksPerCollection - 1 {
            isCollectionDue.store(true, ordering: .relaxed)
        }
        // A disk that does not answer delays one round, and no further rounds queue behind it.
        guard count % Self.ticksPerUpkeep == Self.ticksPerUpkeep - 1, !isRunning.exchange(true, ordering: .acquiring)
        else { return }
        threads.run { [self] in
            run()
            isRunning.store(false, ordering: .releasing)
        }
    }

    private func run() {
        stores.checkFiles()
        rules.poll()
        realtime.pollRules()
        certificate?.poll()
        triggers.poll()
        backups?.tick()
        realtime.runUnfinished()
        let now = clock.monotonicNanoseconds()
        closeUnused(existing: false, at: now, idleNanoseconds: Self.deferredIdleNanoseconds)
        closeUnused(existing: true, at: now, idleNanoseconds: UInt64(Limits.databaseIdleSeconds) * 1_000_000_000)
        if isCollectionDue.exchange(false, ordering: .relaxed) {
            triggers.expire()
            for database in registry.openDatabases {
                Self.collectGarbage(database)
                deleteOldStreams(database)
                once.run(database)
            }
        }
    }

    private func closeUnused(existing: Bool, at now: UInt64, idleNanoseconds: UInt64) {
        if now > idleNanoseconds { openStores.closeUnused(existing: existing, before: now - idleNanoseconds) }
    }

    private static func collectGarbage(_ database: Database) {
        database.collectGarbage { result in
            if case .success(true) = result { collectGarbage(database) }
        }
    }

    /// Each step begins on a thread of its own: the writer, which ends them, must not search for the next one.
    private func deleteOldStreams(_ database: Database) {
        database.deleteOldStreams { [self] result in
            guard case .success(true) = result else { return }
            threads.run { [self] in deleteOldStreams(database) }
        }
    }
}
