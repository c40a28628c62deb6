import HearthDocuments
import HearthFirestoreServer
import HearthHost
import HearthModel
import HearthNetwork
import HearthRealtimeServer
import HearthSQLite
import HearthTriggers

/// The triggers of a server, from its configuration.
package struct Triggers: Sendable {
    package struct Configuration: Sendable {
        /// `hearth.json`, which need not exist; nil when triggers are not configured by a file.
        package var file: TriggerFile?
        /// What it defines.
        package var definitions: [TriggerDefinition] = []
        /// Of the functions emulator of Firebase's tools: `HOST:PORT`.
        package var functionsEmulator: String?
        /// The region that events name.
        package var location = "us-central1"

        package init() {}
    }

    let service: TriggerService
    private let configuration: TriggerConfiguration
    private let emulated: EmulatorTriggers

    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION when the triggers that administrators have made can't be read.
    init(_ server: Server.Configuration) throws(Status) {
        let wanted = server.triggers
        let file = wanted.file ?? TriggerFile(path: "hearth.json", project: server.project)
        let store = TriggerStore(path: server.dataFolder.map { $0 + "/triggers.json" }, file: file) {
            path, bytes throws(Status) in try DataFolder.write(bytes, path)
        }
        let stored = try store.read()
        var configuration = TriggerService.Configuration()
        configuration.definitions = TriggerConfiguration.inForce(file: wanted.definitions, stored: stored)
        configuration.location = wanted.location
        configuration.log = server.log
        service = try TriggerService(configuration)
        self.configuration = TriggerConfiguration(
            service: service, source: file, file: wanted.definitions, store: store, stored: stored,
            polls: wanted.file != nil, log: server.log)
        emulated = EmulatorTriggers(service, address: wanted.functionsEmulator, log: server.log)
    }

    func opened(_ database: Database) throws(Status) { try service.opened(database) }

    func opened(_ namespace: RealtimeNamespace) throws(Status) {
        try service.opened(namespace.database, of: namespace)
    }

    /// Begins to deliver what an earlier run of the process has left.
    func start(_ registry: DatabaseRegistry, _ realtime: RealtimeService) {
        service.start(
            TriggerDirectory(
                names: { () throws(Status) in try registry.databases() },
                exists: { name throws(Status) in try registry.exists(name) },
                open: { name, completion in registry.open(name, completion) },
                namespaces: { () throws(Status) in try realtime.names() },
                openNamespace: { name throws(Status) in _ = try realtime.namespace(name) }))
    }

    /// To be called about once a second.
    func poll() {
        configuration.poll()
        service.poll()
    }

    /// To be called about once a minute.
    func expire() {
        service.forgetDeleted()
        service.expireDeadLetters()
        service.forgetRemoved()
    }

    func routes(
        _ service: FirestoreService, _ observer: RequestObserver, isEmulator: Bool
    ) -> [any HTTPExtension] {
        let (authenticator, access) = (service.authenticator, service.access)
        let administrators = TriggersHTTP(service: self.service, configuration: configuration, observer: observer) {
            exchange, changes, done in
            authenticator.identify(exchange.head.firstValue("authorization"), on: exchange.loop) { result in
                done(
                    Result { () throws(Status) in
                        try access.requireAdministrator(
                            try result.get(), of: .server, changes ? .writes : .reads,
                            "Triggers are for administrators.")
                    })
            }
        }
        return isEmulator ? [EmulatorTriggersHTTP(emulated), administrators] : [administrators]
    }
}
