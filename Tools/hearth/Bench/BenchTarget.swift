import HearthServer

/// Something that is measured.
enum BenchTarget: Sendable {
    /// This program's own server, started for the bench.
    case hearth(isInMemory: Bool)
    /// A server that somebody else has started.
    case address(host: String, port: Int)
    case emulator
    case postgres
    case sqlite
    /// The bare disk: what one synchronous write costs.
    case disk

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
        if settings.peers.contains("sqlite") { targets.append(.sqlite) }
        if settings.peers.contains("postgres") { targets.append(.postgres) }
        if settings.peers.contains("emulator") { targets.append(.emulator) }
        return targets
    }

    var name: String {
        switch self {
        case .hearth(let isInMemory): isInMemory ? "hearth --memory" : "hearth"
        case .address(let host, let port): "\(host):\(port)"
        case .emulator: "emulator"
        case .postgres: "postgres"
        case .sqlite: "sqlite"
        case .disk: "fdatasync"
        }
    }

    var isPeer: Bool {
        switch self {
        case .hearth, .address: false
        default: true
        }
    }

    func serves(_ workload: Workload) -> Bool {
        switch (self, workload.kind) {
        case (.hearth, _), (.emulator, _): true
        case (.address, .startup), (.address, .idleMemory): false
        case (.address, _): true
        case (.postgres, .commit(_, .all)), (.sqlite, .commit(_, .all)), (.sqlite, .commit(_, .one)): true
        case (.disk, .commit(inFlight: 1, _)): true
        default: false
        }
    }

    func start(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) -> any BenchSession {
        switch self {
        case .hearth(let isInMemory):
            let server = HearthProcess(isInMemory: isInMemory, housekeeping)
            return try FirestoreSession(settings, server: server, warmUpSeconds: 1)
        case .address(let host, let port):
            return try FirestoreSession(settings, server: RemoteServer(host: host, port: port), warmUpSeconds: 1)
        case .emulator:
            // A virtual machine needs its time to compile what is used.
            return try FirestoreSession(settings, server: try EmulatorProcess(housekeeping), warmUpSeconds: 3)
        case .postgres: return try PostgresPeer(settings, housekeeping)
        case .sqlite: return SQLitePeer(settings, housekeeping)
        case .disk: return DiskPeer(settings, housekeeping)
        }
    }
}

/// A target that is ready to be measured.
protocol BenchSession {
    func run(_ workload: Workload) throws(ToolFailure) -> [Figure]
    func stop()
}
