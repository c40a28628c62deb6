import HearthModel
import HearthNetwork
import HearthSQLite
import HearthStorage
import Synchronization

/// A Hearth server: data, services and front ends put together.
public final class Server: Sendable {
    public struct Configuration: Sendable {
        public var network = ServerConfiguration()
        /// The data folder; nil keeps everything in memory.
        public var dataFolder: String? = "hearth-data"
        public var firestore = FirestoreService.Options()
        /// Threads for scans whose cost isn't that of their answer.
        public var workersMax = 4

        public init() {}
    }

    public let registry: DatabaseRegistry
    private let pool: WorkerPool
    private let network: NetworkServer
    private let stopRequest: SharedRequest

    /// - Parameter onShutdownRequest: called when a client asks the server to end (`POST /shutdown`).
    /// - Throws: a status with one plain sentence when the data folder can't be used.
    public init(_ configuration: Configuration, onShutdownRequest: @escaping @Sendable () -> Void = {}) throws(Status) {
        let provider: any StoreProvider
        if let folder = configuration.dataFolder {
            provider = try SQLiteStoreProvider(path: folder)
        } else {
            provider = MemoryStoreProvider()
        }
        registry = DatabaseRegistry(provider: provider)
        pool = WorkerPool(threadsMax: configuration.workersMax)
        stopRequest = SharedRequest(onShutdownRequest)
        let service = FirestoreService(registry: registry, pool: pool, options: configuration.firestore)
        let request = stopRequest
        network = NetworkServer(
            configuration: configuration.network,
            http: RESTFrontEnd(service, extensions: [], shutdown: { request.fire() }), grpc: GRPCFrontEnd(service))
    }

    /// Begins to take connections.
    /// - Throws: a status with one plain sentence when the port or the certificate can't be used.
    public func start() throws {
        try network.start()
        if let loop = network.loops.first { Self.scheduleTicks(loop, registry, count: 0) }
    }

    public var port: Int { network.port }

    /// Refuses new requests, waits for the open ones, and closes the data.
    public func shutdown(graceSeconds: Double) {
        network.shutdown(graceSeconds: graceSeconds)
        pool.stop()
        registry.close()
    }

    private static let tickMilliseconds = 100

    /// Leases, expiry and old versions are looked after from one loop.
    private static func scheduleTicks(_ loop: EventLoop, _ registry: DatabaseRegistry, count: Int) {
        loop.schedule(afterMilliseconds: tickMilliseconds) { [weak registry] in
            guard let registry else { return }
            registry.tick()
            if count % 600 == 599 {
                for database in registry.openDatabases { collectGarbage(database) }
            }
            scheduleTicks(loop, registry, count: count + 1)
        }
    }

    private static func collectGarbage(_ database: Database) {
        database.collectGarbage { result in
            if case .success(true) = result { collectGarbage(database) }
        }
    }
}

/// Passes on a wish to end, once.
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
