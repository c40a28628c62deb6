import HearthBackup
import HearthHost
import HearthFirestoreServer
import HearthRealtimeServer
import HearthConcurrency
import HearthDocuments
import Glibc
import HearthModel
import HearthNetwork
import HearthEngine
import HearthTriggers
import Synchronization

/// A Hearth server: data, services and front ends.
package final class Server: Sendable {
    package struct Configuration: Sendable {
        package var network = ServerConfiguration()
        /// The data folder; nil keeps everything in memory.
        package var dataFolder: String? = "hearth-data"
        package var firestore = FirestoreService.Options()
        /// Threads for what would hold up an event loop: half of them for work whose cost is that of a request or an
        /// answer, the others for scans.
        package var workersMax = 4
        /// The length of a database's write-ahead log from which it is copied into the database.
        package var checkpointBytes = 80 << 20
        /// Index definitions to bring databases of any project up to, by database id.
        package var indexes: [String: IndexConfiguration] = [:]
        package var log = Log()
        package var logsRequests = false
        /// Opens databases also when their commits lie an hour or more ahead of the clock.
        package var allowsClockSkew = false
        /// Whether the server is for local development: `owner` and unsigned tokens are believed, a database without rules
        /// is open, and anybody may clear a database, replace the rules or end the server over HTTP.
        package var isEmulator = true
        /// The project whose databases clients may be the first to use, and that of bundles whose address names none;
        /// administrators, and everybody on a server for local development, may use any.
        package var project = "demo-hearth"
        /// Whether rules of lists take what a query filters for all that its documents have, as Google's emulator does; nil for
        /// local development only.
        package var emulatesRulesOfLists: Bool?
        /// Files with security rules, by database id.
        package var rules: [String: String] = [:]
        /// Definitions of bundles by name: see `BundleDefinition`.
        package var bundles: [String: BundleDefinition] = [:]
        /// Origins of web pages, besides those at loopback addresses, that may use a server for local development.
        package var allowedOrigins: [String] = []
        /// Names of such a server, besides localhost, addresses, and the hosts that it listens on.
        package var allowedHosts: [String] = []
        /// For how many seconds the change feed of a database can be read; nil for an hour.
        package var changesRetentionSeconds: Int?
        /// Whose tokens are believed.
        package var identity = IdentityConfiguration()
        /// Files with rules of the Realtime Database: for all namespaces that have none of their own, and by namespace.
        package var realtimeRules: String?
        package var realtimeRulesByName: [String: String] = [:]
        package var triggers = Triggers.Configuration()
        /// Backups on a timer; nil for none.
        package var backups: BackupSchedule.Configuration?
        /// The folder that exports and imports of the admin API may use; nil for none.
        package var exportFolder: String?
        /// The top-level collection of which each database's documents are deleted when they are old (`OnceLedger`); empty for
        /// none.
        package var onceCollection = "_once"
        /// Whether documents are deleted that have expired by a time-to-live policy.
        package var deletesExpired = true

        package init() {}
    }

    package let registry: DatabaseRegistry
    private let pool: WorkerPool
    let memory: ServerMemory
    let longReads: LongReads
    private let streams: OpenStreams
    private let network: NetworkServer
    private let stopRequest: SharedRequest
    private let rulesFiles: RulesFiles
    private let tls: TLSConfiguration?
    private let clock = SteadyClock()
    private let log: Log
    package let realtime: RealtimeService
    private let bundles: BundleCache
    private let readiness: Readiness
    private let stores: Stores
    private let lifecycle: LifecycleThreads
    /// Set when the limit of open files allows fewer connections than were configured.
    private let fewerConnections: DescriptorShares?
    private let openStores: OpenStores
    private let onceCollection: String
    private let expiry: ExpiryUpkeep?
    private let upkeep = LifecycleThreads(threadsMax: 1, name: "hearth-upkeep")
    private let ticks = Slot<Periodic>()
    private let triggers: Triggers
    /// Exports and imports of Firestore's databases.
    package let transfers: TransferService
    private let admin: AdminService
    private let backups: BackupService
    private let backupSchedule: BackupSchedule?
    /// The types that serve routes, by name, for the tests that check each of them.
    let routeFamilies: [String]
    /// The network that `/metrics` reads; emptied at the end, because the network holds what reads it.
    private let watchedNetwork = Slot<NetworkServer>()

    /// - Parameter onShutdownRequest: called when a client asks the server to end (`POST /shutdown`).
    /// - Throws: a status with one plain sentence when the data folder can't be used.
    package init(_ configuration: Configuration, onShutdownRequest: @escaping @Sendable () -> Void = {}) throws(Status)
    {
        let log = configuration.log
        let shares = try Self.shares(configuration)
        fewerConnections = shares.connectionsMax < configuration.network.limits.connectionsMax ? shares : nil
        let health = StorageHealth(log: log)
        stores = try Stores(configuration, health)
        // With TLS a part of the memory that all kinds share is its own.
        let tlsBytes = configuration.network.tls == nil ? 0 : Limits.tlsOwnBytes
        memory = ServerMemory(pool: MemoryPool(bytesMax: Limits.pooledBytesMax - tlsBytes))
        lifecycle = LifecycleThreads()
        openStores = OpenStores(OpenStores.Bounds(shares), threads: lifecycle)
        self.log = log
        onceCollection = configuration.onceCollection
        tls = configuration.network.tls
        triggers = try Triggers(configuration)
        let backups = BackupService(stores.backups, log: log)
        self.backups = backups
        backupSchedule = try configuration.backups.map { schedule throws(Status) in
            try BackupSchedule(schedule, dataFolder: configuration.dataFolder, backups, log: log)
        }
        registry = DatabaseRegistry(
            provider: stores.firestore, threads: lifecycle, openStores: openStores, clock: clock,
            allowsClockSkew: configuration.allowsClockSkew, memory: memory.databases,
            prepare: Self.preparation(
                configuration.indexes, changesRetentionSeconds: configuration.changesRetentionSeconds, triggers, log))
        expiry =
            configuration.deletesExpired
            ? ExpiryUpkeep(registry: registry, threads: upkeep, clock: clock, log: log) : nil
        pool = Self.workers(configuration)
        longReads = LongReads()
        transfers = TransferService(longReads: longReads, clock: clock)
        stopRequest = SharedRequest(onShutdownRequest)
        let rules = RulesRegistry()
        let library = try Self.library(configuration, rules, clock)
        let rulesFiles = RulesFiles(configuration.rules, library, log: log)
        self.rulesFiles = rulesFiles
        try Self.configured { () throws(Status) in try rulesFiles.load() }
        let authenticator = Authenticator(
            isEmulator: configuration.isEmulator, project: configuration.project, configuration.identity, clock: clock)
        realtime = try Self.realtime(
            configuration, stores, authenticator, pool, memory, longReads, (lifecycle, openStores), triggers, clock)
        let service = FirestoreService(
            registry: registry, pool: pool, memory: memory, longReads: longReads, options: configuration.firestore,
            authenticator: authenticator,
            access: AccessControl(
                rules: rules, isEmulator: configuration.isEmulator, project: configuration.project,
                emulatesLists: configuration.emulatesRulesOfLists, clock: clock, log: log))
        streams = service.streams
        readiness = service.readiness
        let (request, pool, registry) = (stopRequest, pool, registry)
        let exportFolder = try configuration.exportFolder.map { path throws(Status) in
            try Self.configured { () throws(Status) in try ExportRoot(path, dataFolder: configuration.dataFolder) }
        }
        let admin = AdminService(directory: registry, transfers: transfers, exportFolder: exportFolder, clock: clock) {
            refused, job in
            pool.run(.long, for: .server, refused: refused, job)
        }
        self.admin = admin
        let requests = RequestMetrics(loopCount: Self.loopCount(configuration))
        bundles = BundleCache(
            folder: configuration.dataFolder ?? SpillFile.temporaryFolder,
            requireIndexes: configuration.firestore.requireIndexes)
        let observer = RequestObserver(metrics: requests, log: configuration.logsRequests ? log : nil)
        let changeReaders = ChangeReaders()
        var metrics = Self.metrics(
            requests, watchedNetwork, registry, realtime, health,
            WorkloadMetrics(pool: pool, reads: longReads, memory: memory), triggers)
        if let expiry { metrics.further.append { expiry.write(to: &$0) } }
        metrics.changeReaders = { changeReaders.present }
        if let backupSchedule { metrics.further.append { backupSchedule.write(to: &$0) } }
        let changes = ChangesHTTP(
            service: service, readers: changeReaders, project: configuration.project, observer: observer, clock: clock)
        let extensions =
            triggers.routes(service, observer, isEmulator: configuration.isEmulator)
            + [
                RulesAdminHTTP(library: library, service: service, observer: observer),
                FirebaseToolsHTTP(service: service, observer: observer),
            ] + Self.extensions(configuration, service, realtime, rules, bundles, admin, metrics, observer)
            + [changes, Self.backupRoute(backups, service, observer, log)]
        routeFamilies = extensions.map { "\(type(of: $0))" }.sorted()
        network = NetworkServer(
            configuration: Self.network(configuration, memory, shares),
            http: RESTFrontEnd(
                service, extensions: extensions, observer: observer, servesEmulatorRoutes: configuration.isEmulator,
                origins: Self.origins(configuration), health: health, shutdown: { request.fire() }),
            grpc: GRPCFrontEnd(service, admin: admin, observer: observer))
        watchedNetwork.value = network
    }

    /// The rulesets and releases that are stored, which are in force from here on.
    private static func library(
        _ configuration: Configuration, _ rules: RulesRegistry, _ clock: any Clock
    ) throws(Status) -> RulesLibrary {
        let disk: any RulesDisk = configuration.dataFolder.map { RulesFolder(in: $0) } ?? MemoryRulesDisk()
        let library = RulesLibrary(
            disk: disk, registry: rules, project: configuration.project, clock: clock, log: configuration.log)
        try library.load()
        return library
    }

    private static func workers(_ configuration: Configuration) -> WorkerPool {
        let shortMax = max(1, configuration.workersMax / 2)
        return WorkerPool(shortThreadsMax: shortMax, longThreadsMax: max(1, configuration.workersMax - shortMax))
    }

    private static func metrics(
        _ requests: RequestMetrics, _ network: Slot<NetworkServer>, _ registry: DatabaseRegistry,
        _ realtime: RealtimeService, _ health: StorageHealth, _ workload: WorkloadMetrics, _ triggers: Triggers
    ) -> ServerMetrics {
        var metrics = ServerMetrics(
            requests: requests, network: { network.value?.statistics ?? NetworkStatistics() },
            databases: { registry.openDatabases }, trees: { realtime.openNamespaces.map(\.database) },
            health: health)
        metrics.workload = workload
        metrics.further.append { triggers.service.write(to: &$0) }
        return metrics
    }

    /// Brings a database that is opened to the configured indexes, and has its commits recorded for triggers.
    private static func preparation(
        _ indexes: [String: IndexConfiguration], changesRetentionSeconds: Int?, _ triggers: Triggers, _ log: Log
    ) -> DatabaseRegistry.Preparation {
        { database, done throws(Status) in
            if let changesRetentionSeconds { database.setChangesRetention(seconds: changesRetentionSeconds) }
            ClockReport.opened(database, log)
            try triggers.opened(database)
            guard let wanted = indexes[database.name.database] else {
                database.resumeIndexes { result in
                    if case .failure(let status) = result { logFailure(status, database, log) }
                }
                return done()
            }
            wanted.apply(to: database) { result in
                done()
                if case .failure(let status) = result { logFailure(status, database, log) }
            }
        }
    }

    private static func logFailure(_ status: Status, _ database: Database, _ log: Log) {
        log.error(
            "indexes could not be built", ("database", .string(database.name.string)),
            ("reason", .string(status.message)))
    }

    private static func loopCount(_ configuration: Configuration) -> Int {
        let count = configuration.network.loopCount
        return count > 0 ? count : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }

    /// The routes besides those of Firestore's REST form, in the order in which they are asked for a request.
    private static func extensions(
        _ configuration: Configuration, _ service: FirestoreService, _ realtime: RealtimeService,
        _ rules: RulesRegistry, _ bundles: BundleCache, _ admin: AdminService, _ metrics: ServerMetrics,
        _ observer: RequestObserver
    ) -> [any HTTPExtension] {
        let local: [any HTTPExtension] =
            configuration.isEmulator
            ? [RulesHTTP(rules), EmulatorTransferHTTP(service: service, admin: admin)] : []
        return local + [
            LongPollHTTP(service: realtime, streams: service.streams), RealtimeSocketHTTP(service: realtime),
            RealtimeHTTP(service: realtime, observer: observer), WebChannelHTTP(service, observer: observer),
            MetricsHTTP(
                metrics: metrics, isOpen: configuration.isEmulator, authenticator: service.authenticator,
                access: service.access),
            BundleHTTP(
                service: service, keeper: bundles, definitions: configuration.bundles,
                project: configuration.project, observer: observer),
            AdminHTTP(
                admin: admin, observer: observer, authenticator: service.authenticator, access: service.access),
        ]
    }

    private static func backupRoute(
        _ backups: BackupService, _ service: FirestoreService, _ observer: RequestObserver, _ log: Log
    ) -> BackupHTTP {
        let (authenticator, access) = (service.authenticator, service.access)
        return BackupHTTP(service: backups, streams: service.streams, observer: observer, log: log) { exchange, done in
            authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { result in
                done(
                    Result { () throws(Status) in
                        // Who has a copy of everything has all that a read-only credential lacks, secrets of triggers among it.
                        try access.requireAdministrator(
                            try result.get(), of: .server, .writes, "Backups are for administrators.")
                    })
            }
        }
    }

    /// The web pages that may use the server; nil for any.
    private static func origins(_ configuration: Configuration) -> OriginPolicy? {
        guard configuration.isEmulator else { return nil }
        let network = configuration.network
        return OriginPolicy(
            origins: configuration.allowedOrigins,
            hosts: configuration.allowedHosts + [network.host] + network.furtherAddresses.map(\.host))
    }

    private static func realtime(
        _ configuration: Configuration, _ stores: Stores, _ authenticator: Authenticator, _ pool: WorkerPool,
        _ memory: ServerMemory, _ longReads: LongReads,
        _ lifecycle: (threads: LifecycleThreads, openStores: OpenStores), _ triggers: Triggers, _ clock: any Clock
    ) throws(Status) -> RealtimeService {
        var realtime = RealtimeService.Configuration()
        realtime.isEmulator = configuration.isEmulator
        realtime.project = configuration.project
        realtime.rules = RealtimeRulesFiles.Paths(
            common: configuration.realtimeRules, byName: configuration.realtimeRulesByName)
        realtime.folder = stores.realtimeFolder
        realtime.log = configuration.log
        return try configured { [realtime] () throws(Status) in
            try RealtimeService(
                realtime,
                provider: stores.realtime, authenticator: authenticator, pool: pool, memory: memory,
                longReads: longReads, lifecycle: lifecycle, clock: clock,
                prepare: { namespace throws(Status) in try triggers.opened(namespace) })
        }
    }

    /// Reads files that the operator has named: one that is missing or can't be read is an error of the configuration.
    private static func configured<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) { return try body() } catch { throw .invalidArgument(error.message) }
    }

    /// How the process's file descriptors are divided.
    private static func shares(_ configuration: Configuration) throws(Status) -> DescriptorShares {
        try DescriptorShares(
            descriptorsMax: descriptorsMax(), loopCount: loopCount(configuration),
            connectionsMax: configuration.network.limits.connectionsMax)
    }

    private func logFewerConnections() {
        guard let shares = fewerConnections else { return }
        log.info(
            "the limit of open files allows fewer connections", ("connections", .integer(shares.connectionsMax)),
            ("openFiles", .integer(Self.descriptorsMax())), ("databasesInUse", .integer(shares.storesUsedMax)))
    }

    /// Files and sockets that the process may have open.
    private static func descriptorsMax() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// Requests of the Realtime Database may be larger than all others.
    private static func network(
        _ configuration: Configuration, _ memory: ServerMemory, _ shares: DescriptorShares
    ) -> ServerConfiguration {
        var network = configuration.network
        network.brokenInvariants = BrokenInvariants(log: configuration.log)
        network.limits.connectionsMax = shares.connectionsMax
        network.receivedBytes = memory.received
        network.pool = memory.pool
        network.limits.bodyBytesMax = max(network.limits.bodyBytesMax, Limits.realtimeBodyBytesMax + 1)
        return network
    }

    /// Begins to take connections.
    /// - Parameter prepare: is called before the first of them.
    /// - Throws: a status with one plain sentence when the port or the certificate can't be used; what `prepare` throws.
    package func start(prepare: () throws -> Void = {}) throws {
        let certificate = tls.map { [network, log] tls in
            CertificateFiles(tls, log: log) { () throws(Status) in try network.reloadCertificate() }
        }
        let upkeep = Upkeep(
            stores: stores, registry: registry, realtime: realtime, rules: rulesFiles, certificate: certificate,
            openStores: openStores,
            triggers: triggers, backups: backupSchedule, threads: self.upkeep, onceCollection: onceCollection,
            expiry: expiry)
        let (clock, log, registry, admin) = (clock, log, registry, admin)
        let pressure = CachePressure(memory.pool)
        ticks.value = Periodic("hearth-ticks", everyMilliseconds: Upkeep.tickMilliseconds) { count in
            ClockReport.check(clock, log)
            pressure.tick(count, registry.openDatabases)
            upkeep.tick(count)
            admin.tick()
        }
        if ticks.value == nil { throw Status.unavailable("The system cannot start another thread.") }
        try prepare()
        try network.start()
        logFewerConnections()
        if !NetworkServer.canLimitContinuations {
            log.warning(
                "this nghttp2 cannot end endless CONTINUATION frames (CVE-2024-28182): install its security updates")
        }
        triggers.start(registry, realtime)
        expiry?.start()
    }

    package var port: Int { network.port }

    /// The ports of the further addresses, in their order.
    package var furtherPorts: [Int] { network.furtherPorts }

    /// Refuses new requests, waits for the open ones and for deliveries of events, and closes the data.
    /// - Parameters:
    ///   - graceSeconds: for requests and deliveries together.
    ///   - finally: is called when all requests have ended, before the data is closed.
    package func shutdown(graceSeconds: Double, finally: () -> Void = {}) {
        let begin = MonotonicTime.now
        triggers.service.beginStop()
        streams.close()
        backups.stop()
        realtime.streams.close()
        network.shutdown(graceSeconds: graceSeconds)
        watchedNetwork.value = nil
        let ended = MonotonicTime.now
        finally()
        let finallyNanoseconds = MonotonicTime.now.nanoseconds - ended.nanoseconds
        transfers.stop()
        longReads.close()
        ticks.value?.stop()
        expiry?.stop()
        upkeep.stop()
        let passedSeconds = Double(MonotonicTime.now.nanoseconds - begin.nanoseconds - finallyNanoseconds) / 1e9
        triggers.service.stop(graceSeconds: graceSeconds - passedSeconds)
        readiness.stop()
        bundles.stop()
        pool.stop()
        realtime.close()
        registry.close()
        lifecycle.stop()
    }
}

/// Passes on a request to end, once.
private final class SharedRequest: Sendable {
    private let isFired = Atomic<Bool>(false)
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    func fire() {
        if !isFired.exchange(true, ordering: .relaxed) { body() }
    }
}
