import CCrash
import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthHost
import HearthServer

/// `hearth serve`
enum ServeCommand {
    static let command = ToolCommand(
        name: "serve", summary: "Serve Cloud Firestore and the Realtime Database.",
        options: ServeOptions.options, help: { ServeOptions.help() },
        run: { arguments throws(ToolFailure) in
            try run(try ServeResolution.settings(arguments, environment: Environment.all))
        })

    private static func run(_ settings: ServeSettings) throws(ToolFailure) {
        // Before any other thread is started, so that all leave the signals to its own.
        let interruption = try Interruption(raises: true)
        FileLimit.raise()
        // Only the user that runs the server may read data, rules, journals and temporary files.
        umask(0o077)
        let log = Log(format: settings.logFormat, level: settings.logLevel)
        defer { log.flush() }
        hearth_crash_report(settings.logFormat == .json ? 1 : 0)
        for warning in settings.warnings { log.warning(warning) }
        let data = try ServedData(settings, log, interruption)
        let server = try start(settings, log, data)
        interruption.expect()
        announce(settings, port: server.port, databasePort: server.furtherPorts.first, log)
        // The next signal ends the server immediately.
        interruption.wait()
        log.info("shutting down", ("graceSeconds", .integer(settings.graceSeconds)))
        var failure: ToolFailure?
        server.shutdown(graceSeconds: Double(settings.graceSeconds)) {
            do throws(ToolFailure) { try data.save(server) } catch { failure = error }
        }
        log.info("stopped")
        if let failure { throw failure }
    }

    private static func start(
        _ settings: ServeSettings, _ log: Log, _ data: ServedData
    ) throws(ToolFailure) -> Server {
        var configuration = Server.Configuration()
        configuration.dataFolder = settings.dataFolder
        configuration.workersMax = settings.workers
        configuration.checkpointBytes = settings.checkpointKiB << 10
        configuration.indexes = settings.indexes
        configuration.log = log
        configuration.logsRequests = settings.logsRequests
        configuration.isEmulator = settings.isEmulator
        configuration.allowedOrigins = settings.allowedOrigins
        configuration.emulatesRulesOfLists = settings.emulatesRulesOfLists
        configuration.allowedHosts = settings.allowedHosts
        configuration.project = settings.project
        configuration.rules = settings.rules
        configuration.realtimeRules = settings.databaseRules
        configuration.realtimeRulesByName = settings.databaseRulesByName
        configuration.identity = settings.identity
        configuration.bundles = settings.bundles
        configuration.triggers.file = settings.triggerFile
        configuration.triggers.definitions = settings.triggers
        configuration.triggers.functionsEmulator = settings.functionsEmulator
        configuration.triggers.location = settings.location
        configuration.backups = settings.backups
        configuration.exportFolder = settings.exportFolder
        configuration.firestore.requireIndexes = settings.requiresIndexes
        configuration.changesRetentionSeconds = settings.changesRetentionSeconds
        configuration.allowsClockSkew = settings.allowsClockSkew
        configuration.onceCollection = settings.onceCollection
        configuration.deletesExpired = settings.deletesExpired
        configuration.network = ServerConfiguration(
            host: settings.host, port: settings.port, loopCount: settings.loops)
        if let port = settings.databasePort {
            configuration.network.furtherAddresses = [
                ListeningAddress(host: settings.databaseHost ?? settings.host, port: port)
            ]
        }
        if let certificate = settings.tlsCertificate, let key = settings.tlsKey {
            configuration.network.tls = TLSConfiguration(certificatePath: certificate, keyPath: key)
        }
        let server: Server
        do throws(Status) {
            server = try Server(configuration, onShutdownRequest: { SignalWaiter.request() })
        } catch {
            throw error.code == .invalidArgument ? .configuration(error.message) : ToolFailure(.data, error.message)
        }
        do {
            try server.start { try data.load(server) }
        } catch {
            server.shutdown(graceSeconds: 0)
            throw failure(ofStart: error, settings)
        }
        return server
    }

    private static func failure(ofStart error: any Error, _ settings: ServeSettings) -> ToolFailure {
        if let failure = error as? ToolFailure { return failure }
        let message = (error as? Status)?.message ?? "\(error)"
        let files = [settings.tlsCertificate, settings.tlsKey].compactMap { $0 }
        let sentence = message.prefix(1).uppercased() + message.dropFirst() + (message.hasSuffix(".") ? "" : ".")
        if files.contains(where: { message.contains($0) }) { return .configuration(sentence) }
        if message.hasSuffix(":\(settings.port): another program uses the port") {
            return ToolFailure(.unavailable, "\(sentence) Name another with --port; 0 takes a free one.")
        }
        return ToolFailure(.unavailable, sentence)
    }

    // MARK: The start-up message

    private static func announce(_ settings: ServeSettings, port: Int, databasePort: Int?, _ log: Log) {
        switch settings.logFormat {
        case .string:
            Output.string(
                StartMessage.block(
                    settings, port: port, databasePort: databasePort, folder: StartMessage.absolute(settings.dataFolder)
                ))
        case .json:
            log.info(
                "serving", ("address", .string(StartMessage.address(settings.host, port))),
                (
                    "databaseAddress",
                    .string(
                        StartMessage.address(
                            databasePort == nil ? settings.host : settings.databaseHost ?? settings.host,
                            databasePort ?? port))
                ),
                ("data", .string(StartMessage.absolute(settings.dataFolder) ?? "memory")),
                ("project", .string(settings.project)),
                ("version", .string(HearthVersion.string)))
        }
    }
}
