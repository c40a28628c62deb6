import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthHost
import HearthServer

/// `hearth serve`
enum ServeCommand {
    static let command = ToolCommand(
        name: "serve", summary: "Serve Cloud Firestore and the Realtime Database.", help: { ServeOptions.help() },
        run: { arguments throws(ToolFailure) in
            try run(try ServeResolution.settings(arguments, environment: Environment.all))
        })

    private static func run(_ settings: ServeSettings) throws(ToolFailure) {
        // Before any thread is started, so that all threads leave the signals to this one.
        let signals = SignalWaiter()
        FileLimit.raise()
        // Only the user that runs the server may read data, rules, journals and temporary files.
        umask(0o077)
        let log = Log(format: settings.logFormat, level: settings.logLevel)
        defer { log.flush() }
        for warning in settings.warnings { log.warning(warning) }
        let server = try start(settings, log)
        announce(settings, port: server.port, databasePort: server.furtherPorts.first, log)
        signals.wait()
        log.info("shutting down", ("graceSeconds", .integer(settings.graceSeconds)))
        // A second signal ends the server immediately.
        signals.exitOnNext()
        server.shutdown(graceSeconds: Double(settings.graceSeconds))
        log.info("stopped")
    }

    private static func start(_ settings: ServeSettings, _ log: Log) throws(ToolFailure) -> Server {
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
        configuration.firestore.requireIndexes = settings.requiresIndexes
        configuration.allowsClockSkew = settings.allowsClockSkew
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
            try server.start()
        } catch {
            server.shutdown(graceSeconds: 0)
            throw failure(ofStart: error, settings)
        }
        return server
    }

    private static func failure(ofStart error: any Error, _ settings: ServeSettings) -> ToolFailure {
        let message = (error as? Status)?.message ?? "\(error)"
        let files = [settings.tlsCertificate, settings.tlsKey].compactMap { $0 }
        let sentence = message.prefix(1).uppercased() + message.dropFirst() + (message.hasSuffix(".") ? "" : ".")
        if files.contains(where: { message.contains($0) }) { return .configuration(sentence) }
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

/// The message for people when the server has started.
enum StartMessage {
    /// - Parameter databasePort: of the second address; nil when there is none.
    static func block(_ settings: ServeSettings, port: Int, databasePort: Int? = nil, folder: String?) -> String {
        let scheme = settings.tlsCertificate == nil ? "http" : "https"
        let databaseHost = databasePort == nil ? settings.host : settings.databaseHost ?? settings.host
        let database = address(reachable(databaseHost), databasePort ?? port)
        var lines = [
            "Hearth \(HearthVersion.string) is serving Cloud Firestore and the Realtime Database.", "",
            "  address   \(scheme)://\(address(settings.host, port))  (gRPC and REST)",
            "  database  \(scheme)://\(database)/?ns=\(settings.project)-default-rtdb  (Realtime Database)",
            "  data      \(folder ?? "in memory, lost at the end")",
            "  project   \(settings.project)",
        ]
        if !settings.indexFiles.isEmpty {
            let indexes = settings.indexes.values.reduce(0) { $0 + $1.indexes.count }
            let overrides = settings.indexes.values.reduce(0) { $0 + $1.overrides.count }
            lines.append(
                "  indexes   \(indexes) composite, \(overrides) field overrides (\(settings.indexFiles.joined(separator: ", ")))"
            )
        }
        lines.append("  access    \(access(settings))")
        lines += [
            "", "  export FIRESTORE_EMULATOR_HOST=\(address(reachable(settings.host), port))",
            "  export FIREBASE_DATABASE_EMULATOR_HOST=\(database)", "  export GOOGLE_CLOUD_PROJECT=\(settings.project)",
            "", "Ctrl-C ends it.", "",
        ]
        return lines.joined(separator: "\n")
    }

    private static func access(_ settings: ServeSettings) -> String {
        let files = settings.rules.sorted { $0.key < $1.key }.map(\.value).joined(separator: ", ")
        switch (settings.isEmulator, settings.rules.isEmpty) {
        case (true, true): return "open to everybody: local development, no rules"
        case (true, false): return "\(files); local development: \"owner\" and unsigned tokens are believed"
        case (false, true): return "administrators only: there are no rules"
        case (false, false): return files
        }
    }

    /// A client cannot connect to a wildcard address.
    private static func reachable(_ host: String) -> String {
        switch host {
        case "", "*", "0.0.0.0": "127.0.0.1"
        case "::": "::1"
        default: host
        }
    }

    static func address(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    static func absolute(_ folder: String?) -> String? {
        guard let folder else { return nil }
        guard let path = realpath(folder, nil) else { return folder }
        defer { free(path) }
        return String(cString: path)
    }
}
