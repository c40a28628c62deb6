import HearthToolSupport

/// A program or a library that is measured.
enum BenchTarget: Sendable {
    /// This program's own server, started for the bench.
    case hearth(isInMemory: Bool)
    /// A server that was started elsewhere.
    case address(host: String, port: Int)
    /// The bare disk: what one synchronous write costs.
    case disk
    /// SQLite's library alone.
    case sqlite
    /// Hearth's own storage alone.
    case store
    case postgres
    case nginx
    case redis
    case emulator

    static func all(_ settings: BenchSettings) throws(ToolFailure) -> [BenchTarget] {
        var targets: [BenchTarget] = []
        if let address = settings.address {
            guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]) else {
                throw .usage("--address expects HOST:PORT, not \"\(address)\".")
            }
            targets.append(.address(host: String(address[..<colon]), port: port))
        } else {
            targets.append(.hearth(isInMemory: settings.isInMemory))
            if !settings.isInMemory { targets.append(.disk) }
        }
        let peers: [BenchTarget] = [.sqlite, .store, .postgres, .nginx, .redis, .emulator]
        return targets + peers.filter { settings.peers.contains($0.name) }
    }

    var name: String {
        switch self {
        case .hearth(let isInMemory): isInMemory ? "hearth --memory" : "hearth"
        case .address(let host, let port): "\(host):\(port)"
        case .disk: "fdatasync"
        case .sqlite: "sqlite"
        case .store: "store"
        case .postgres: "postgres"
        case .nginx: "nginx"
        case .redis: "redis"
        case .emulator: "emulator"
        }
    }

    var isPeer: Bool {
        switch self {
        case .hearth, .address: false
        default: true
        }
    }

    /// Whether what is measured of it may wait for a disk of this machine.
    var isDurable: Bool {
        switch self {
        case .hearth(let isInMemory): !isInMemory
        case .address, .sqlite, .store, .postgres: true
        case .disk, .nginx, .redis, .emulator: false
        }
    }

    func serves(_ workload: Workload) -> Bool {
        switch (self, workload.kind) {
        case (.hearth, _): true
        // These need processes that the bench has started.
        case (.address, .startup), (.address, .idleMemory), (.address, .memoryAfterLoad), (.address, .connections),
            (.address, .commit(_, _, .memory)), (.address, .listen(_, .memory)), (.address, .listenIdle),
            (.address, .commitRules), (.address, .rules), (.address, .databaseIdle),
            (.address, .triggers):
            false
        case (.address, _): true
        // The emulator would need hours for collections without a requirement, and does not use our network engine.
        case (.emulator, .commitRules), (.emulator, .rules), (.emulator, .listenIdle), (.emulator, .listenHot),
            (.emulator, .listenResume), (.emulator, .databaseWrites), (.emulator, .databaseLatency),
            (.emulator, .databaseFanOut), (.emulator, .databaseIdle), (.emulator, .triggers),
            (.emulator, .getConstant),
            (.emulator, .query(_, .huge, _)), (.emulator, .count(.huge)),
            (.emulator, .commit(_, _, .manyDocuments)):
            false
        case (.emulator, _): true
        case (.sqlite, .commit(_, _, .server)), (.store, .commit(_, _, .server)): true
        case (.postgres, .commit(_, .all, .server)): true
        case (.disk, .commit(inFlight: 1, _, _)): true
        case (.nginx, .getREST), (.redis, .get(.eight)), (.redis, .listen): true
        default: false
        }
    }

    func start(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) -> any BenchSession {
        let source: any FirestoreServer
        switch self {
        case .hearth(let isInMemory): source = HearthProcess(isInMemory: isInMemory, housekeeping)
        case .address(let host, let port): source = RemoteServer(host: host, port: port)
        case .emulator: source = try EmulatorProcess(heap: settings.emulatorHeap, housekeeping)
        case .disk: return DiskPeer(settings, housekeeping)
        case .sqlite: return StoragePeer<PlainSQLite>(settings, housekeeping)
        case .store: return StoragePeer<HearthStore>(settings, housekeeping)
        case .postgres: return try PostgresPeer(settings, housekeeping)
        case .nginx: return try NginxPeer(settings, housekeeping)
        case .redis: return try RedisPeer(settings, housekeeping)
        }
        return try FirestoreSession(settings, source, housekeeping)
    }
}
