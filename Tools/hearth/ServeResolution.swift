import HearthToolSupport
import HearthBackup
import HearthModel
import HearthHost
import HearthFirestoreServer
import HearthTriggers

/// Combines a server's settings from the command line, the environment and the files of the folder.
struct ServeResolution {
    private let command: ParsedOptions
    private let environment: [String: String]
    private var file: [String: Origin] = [:]
    private var identity = IdentityConfiguration()
    private var bundles: ConfigurationValue?
    private var triggers: ConfigurationValue?
    private var backups: BackupSchedule.Configuration?
    private var path = ""
    private var warnings: [String] = []

    /// - Parameters:
    ///   - folder: the folder of `hearth.json` and the Firebase project; empty for the working folder.
    /// - Throws: 64 for an invalid option, 78 for an error in the environment or a file.
    static func settings(
        _ words: [String], environment: [String: String], folder: String = ""
    ) throws(ToolFailure) -> ServeSettings {
        var resolution = ServeResolution(
            command: try ParsedOptions(words, options: ServeOptions.options + ServeOptions.ignored),
            environment: environment)
        resolution.checkEnvironment()
        try resolution.readFile(folder)
        return try resolution.resolve(folder)
    }

    private init(command: ParsedOptions, environment: [String: String]) {
        self.command = command
        self.environment = environment
        for option in ServeOptions.ignored where command.values[option.name] != nil {
            warnings.append("The option --\(option.name) of Google's emulator has no effect in Hearth.")
        }
    }

    // MARK: Sources

    /// An unknown name with our prefix may be a typing error. It may also come from a container platform, which creates
    /// such names for a service called hearth, so it causes only a warning.
    private mutating func checkEnvironment() {
        let known = ServeOptions.options.map(\.environmentName)
        for name in environment.keys.sorted() where name.hasPrefix("HEARTH_") && !known.contains(name) {
            guard let nearest = Spelling.nearest(to: name, among: known) else { continue }
            warnings.append("The environment variable \(name) is unknown; did you mean \(nearest)?")
        }
    }

    private mutating func readFile(_ folder: String) throws(ToolFailure) {
        let named = command.string("config") ?? environment["HEARTH_CONFIG"]
        let path = named ?? (folder.isEmpty ? "hearth.json" : "\(folder)/hearth.json")
        let ownFolder = Self.folder(of: path)
        self.path = path
        do throws(Status) {
            guard let string = try TextFile.read(path) else {
                if named != nil { throw Status.failedPrecondition("The configuration \(path) is not there.") }
                return
            }
            let source = try ConfigurationFile(parsing: string, file: path, repairs: false)
            warnings += source.warnings
            for member in try source.root.members() {
                if member.name == "auth" {
                    identity = try IdentityConfiguration(member.value, folder: ownFolder)
                    continue
                }
                if member.name == "backups" {
                    backups = try Self.backups(member.value, ownFolder)
                    continue
                }
                if member.name == "changes" {
                    try readChanges(member.value, path)
                    continue
                }
                if member.name == "bundles" {
                    bundles = member.value
                    continue
                }
                if member.name == "triggers" {
                    triggers = member.value
                    continue
                }
                let option = try Self.option(of: member)
                guard var string = try Self.string(member.value, isList: option.isRepeated) else { continue }
                if option.isFile, !ownFolder.isEmpty, !string.hasPrefix("/") { string = "\(ownFolder)/\(string)" }
                file[option.name] = Origin(string: string, source: "\(path): \(member.name)", code: .configuration)
            }
        } catch {
            throw .configuration(error.message)
        }
    }

    /// The members of `hearth.json` that are no options.
    private static let objects = ["auth", "backups", "bundles", "changes", "triggers"]

    private static func option(of member: ConfigurationValue.Member) throws(Status) -> Option {
        let options = ServeOptions.options.filter { $0.name != "config" }
        if let option = options.first(where: { $0.memberName == member.name || $0.name == member.name }) {
            return option
        }
        let known = objects + options.map(\.memberName)
        throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: known))")
    }

    /// For each member of a configuration that is no setting a sentence with file, line, column and the nearest name.
    static func unknownMembers(of root: ConfigurationValue) throws(Status) -> [Status] {
        var errors: [Status] = []
        for member in try root.members() where !objects.contains(member.name) {
            do throws(Status) { _ = try option(of: member) } catch { errors.append(error) }
        }
        return errors
    }

    private mutating func readChanges(_ value: ConfigurationValue, _ path: String) throws(Status) {
        for member in try value.members() {
            guard member.name == "retention" else {
                throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: ["retention"]))")
            }
            file["changes-retention"] = Origin(
                string: try member.value.string(), source: "\(path): changes.retention", code: .configuration)
        }
    }

    /// `"backups": {"folder": PATH, "every": DURATION, "keep": NUMBER}`
    private static func backups(
        _ value: ConfigurationValue, _ ownFolder: String
    ) throws(Status) -> BackupSchedule.Configuration {
        let known = ["folder", "every", "keep"]
        for member in try value.members() where !known.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: known))")
        }
        guard var folder = try value.member("folder")?.string(), !folder.isEmpty else {
            throw value.failure("\"folder\" is missing: where to keep the backups.")
        }
        if !ownFolder.isEmpty, !folder.hasPrefix("/") { folder = "\(ownFolder)/\(folder)" }
        var everySeconds = 86_400
        if let every = try value.member("every") {
            let origin = Origin(string: try every.string(), source: "every", code: .configuration)
            do throws(ToolFailure) {
                everySeconds = try origin.seconds(60...366 * 86_400)
            } catch {
                throw every.failure("Expected a duration from 60s to 366d, such as \"24h\".")
            }
        }
        return BackupSchedule.Configuration(
            folder: folder, everySeconds: everySeconds, keep: try value.member("keep")?.integer(1...10_000) ?? 7)
    }

    /// Files that a configuration names are relative to it. Empty for the working folder.
    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        // The folder of /hearth.json is empty, and the following slash makes it the root.
        return slash == path.startIndex ? "/." : String(path[..<slash])
    }

    /// A setting's value in the form of the command line.
    private static func string(_ value: ConfigurationValue, isList: Bool) throws(Status) -> String? {
        switch value.content {
        case .null: return nil
        case .boolean(let flag): return flag ? "true" : "false"
        case .string(let string): return string
        case .number: return String(try value.integer(Int(Int32.min)...Int(Int32.max)))
        case .array(let elements) where isList:
            return try elements.map { element throws(Status) in try element.string() }.joined(separator: ",")
        case .array, .object: throw value.failure("Expected a string, a number, true or false.")
        }
    }

    private func origin(_ name: String) -> Origin? {
        if let string = command.values[name] { return Origin(string: string, source: "--\(name)", code: .usage) }
        guard let option = ServeOptions.options.first(where: { $0.name == name }) else { return nil }
        if let string = environment[option.environmentName] {
            return Origin(string: string, source: option.environmentName, code: .configuration)
        }
        return file[name]
    }

    // MARK: Settings

    private func resolve(_ folder: String) throws(ToolFailure) -> ServeSettings {
        var settings = ServeSettings()
        settings.warnings = warnings
        let files: ProjectFiles
        do throws(Status) {
            files = try ProjectFiles(folder: folder, project: origin("project")?.string)
            settings.warnings += files.warnings
        } catch {
            throw .configuration(error.message)
        }
        try resolveIndexes(files, &settings)
        try resolveAddress(files, &settings)
        if let project = origin("project")?.string ?? files.defaultProject { settings.project = project }
        if let data = origin("data") { settings.dataFolder = data.string }
        if try origin("memory")?.boolean() ?? false {
            if command.values["data"] != nil { throw .usage("--memory and --data exclude each other.") }
            settings.dataFolder = nil
        }
        if settings.dataFolder == "" { throw .usage("--data expects the name of a folder.") }
        settings.tlsCertificate = origin("tls-cert")?.string
        settings.tlsKey = origin("tls-key")?.string
        if (settings.tlsCertificate == nil) != (settings.tlsKey == nil) {
            throw .usage("--tls-cert and --tls-key belong together; only one of them is given.")
        }
        try resolveLog(&settings)
        settings.allowsClockSkew = try origin("allow-clock-skew")?.boolean() ?? false
        settings.isEmulator = try origin("emulator")?.boolean() ?? Self.isLoopback(settings.host)
        settings.allowedOrigins = try list("allow-origin") { OriginPolicy.isOrigin($0) }
        settings.emulatesRulesOfLists = try origin("rules-list-emulation")?.boolean()
        settings.allowedHosts = try list("allow-host") { !$0.isEmpty && !$0.contains("/") }
        try resolveDatabase(files, &settings)
        settings.identity = identity
        settings.identity.sharesSignIn = try origin("shared-sign-in")?.boolean() ?? false
        resolveRules(files, &settings)
        if let bundles {
            do throws(Status) {
                settings.bundles = try BundleDefinition.definitions(bundles, project: settings.project)
            } catch {
                throw .configuration(error.message)
            }
        }
        try resolveTriggers(files, &settings)
        try resolveExports(&settings)
        try resolveOnceCollection(&settings)
        settings.deletesExpired = try origin("ttl")?.boolean() ?? true
        settings.backups = backups
        settings.exportFolder = origin("export-folder")?.string
        if settings.exportFolder == "" { throw .usage("--export-folder expects the name of a folder.") }
        settings.loops = try origin("loops")?.integer(0...256) ?? 0
        settings.workers = try origin("workers")?.integer(1...256) ?? 4
        settings.checkpointKiB = try origin("checkpoint-kib")?.integer(64...4_194_304) ?? settings.checkpointKiB
        settings.changesRetentionSeconds = try origin("changes-retention")?.seconds(
            1...Limits.changesRetentionSecondsMax)
        settings.graceSeconds = try origin("grace")?.integer(0...3600) ?? 5
        return settings
    }

    /// The values of an option that may be repeated.
    private func list(_ name: String, _ isValid: (String) -> Bool) throws(ToolFailure) -> [String] {
        guard let origin = origin(name) else { return [] }
        let repeated = command.strings(name)
        let values =
            repeated.isEmpty
            ? origin.string.split(separator: ",").map { String($0.drop { $0 == " " }) } : repeated
        for value in values where !isValid(value) {
            throw Origin(string: value, source: origin.source, code: origin.code).failure(
                name == "allow-origin" ? "an origin such as https://app.example:3000, or null" : "the name of a host")
        }
        return values
    }

    private func resolveAddress(_ files: ProjectFiles, _ settings: inout ServeSettings) throws(ToolFailure) {
        if let host = files.host { settings.host = host }
        if let port = files.port { settings.port = port }
        if let both = origin("host-port") {
            guard let colon = both.string.lastIndex(of: ":"),
                let port = Int(both.string[both.string.index(after: colon)...]), (0...65_535).contains(port)
            else { throw both.failure("ADDRESS:PORT, with a port from 0 to 65535") }
            settings.port = port
            settings.host = String(both.string[..<colon])
            if settings.host.hasPrefix("["), settings.host.hasSuffix("]") {
                settings.host = String(settings.host.dropFirst().dropLast())
            }
        }
        if let host = origin("host") { settings.host = host.string }
        if let port = origin("port") { settings.port = try port.integer(0...65_535) }
    }

    /// The settings of the Realtime Database.
    private func resolveDatabase(_ files: ProjectFiles, _ settings: inout ServeSettings) throws(ToolFailure) {
        settings.databaseRules = files.realtime.rules
        settings.databaseRulesByName = files.realtime.rulesByName
        if let path = origin("database-rules")?.string {
            settings.databaseRules = path
            settings.databaseRulesByName = [:]
        }
        settings.databasePort = files.realtime.port
        if let port = origin("database-port") {
            settings.databasePort = port.string == "none" ? nil : try port.integer(0...65_535)
        }
        settings.databaseHost = origin("host") == nil && origin("host-port") == nil ? files.realtime.host : nil
        // The first address is listed already.
        let isSame = settings.databaseHost.map { $0 == settings.host } ?? true
        if isSame, settings.databasePort == settings.port, settings.port != 0 { settings.databasePort = nil }
        if settings.databasePort == nil { settings.databaseHost = nil }
        // Features for local development only must not be available at the second address either.
        if origin("emulator") == nil, let host = settings.databaseHost, !Self.isLoopback(host) {
            settings.isEmulator = false
        }
    }

    /// What is imported before the first request, and exported after the last.
    private func resolveExports(_ settings: inout ServeSettings) throws(ToolFailure) {
        let folder = try origin("import").map(Self.named)
        let file = try origin("seed-from-export").map(Self.named)
        if let file, folder != nil { throw ToolFailure(file.code, "\(file.source) and --import exclude each other.") }
        settings.importPath = (folder ?? file)?.string
        guard let export = origin("export-on-exit"), export.string != "false" else { return }
        if !["", "true"].contains(export.string) {
            settings.exportPath = export.string
        } else if let folder {
            settings.exportPath = folder.string
        } else {
            throw export.failure("the name of a folder where there is no --import FOLDER")
        }
    }

    private static func named(_ origin: Origin) throws(ToolFailure) -> Origin {
        if origin.string.isEmpty { throw origin.failure("a name") }
        return origin
    }

    private func resolveOnceCollection(_ settings: inout ServeSettings) throws(ToolFailure) {
        guard let collection = origin("once-collection") else { return }
        if !collection.string.isEmpty {
            do throws(Status) {
                try ResourceName.validate(collectionID: collection.string)
            } catch {
                throw collection.failure("the id of a collection, or nothing")
            }
        }
        settings.onceCollection = collection.string
    }

    private func resolveLog(_ settings: inout ServeSettings) throws(ToolFailure) {
        if let format = origin("log-format") {
            guard let known = Log.Format(rawValue: format.string) else { throw format.failure("text or json") }
            settings.logFormat = known
        }
        if let level = origin("log-level") {
            guard let known = Log.Level(name: level.string) else {
                throw level.failure("debug, info, warning or error")
            }
            settings.logLevel = known
        }
        settings.logsRequests = try origin("log-requests")?.boolean() ?? false
    }

    private func resolveTriggers(_ files: ProjectFiles, _ settings: inout ServeSettings) throws(ToolFailure) {
        let file = TriggerFile(path: path, project: settings.project)
        settings.triggerFile = file
        do throws(Status) {
            settings.triggers = try file.definitions(triggers, source: .file)
        } catch {
            throw .configuration(error.message)
        }
        if let region = origin("location") {
            guard !region.string.isEmpty, region.string.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
                throw region.failure("the name of a region")
            }
            settings.location = region.string
        }
        settings.functionsEmulator = files.functionsAddress
        if let address = try functionsAddress() { settings.functionsEmulator = address }
        if !settings.isEmulator { settings.functionsEmulator = nil }
    }

    /// Of the functions emulator, as options name it: `HOST:PORT`.
    private func functionsAddress() throws(ToolFailure) -> String? {
        if let address = origin("functions-emulator") {
            if TriggerURL.fault(of: "http://\(address.string)") != nil || address.string.contains("/") {
                throw address.failure("HOST:PORT, with a port from 1 to 65535")
            }
            return address.string
        }
        let host = origin("functions-emulator-host")
        guard let port = try origin("functions-emulator-port")?.integer(1...65_535) else {
            if let host { throw host.failure("a host with --functions-emulator-port") }
            return nil
        }
        let name = host?.string ?? "127.0.0.1"
        let address = (name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name) + ":\(port)"
        if let host, TriggerURL.fault(of: "http://\(address)") != nil || name.contains("/") {
            throw host.failure("a name or an address")
        }
        return address
    }

    private func resolveIndexes(_ files: ProjectFiles, _ settings: inout ServeSettings) throws(ToolFailure) {
        settings.requiresIndexes = try origin("require-indexes")?.boolean() ?? false
        var files = files
        if let path = origin("indexes")?.string {
            files.databases.removeAll { $0.database == DatabaseName.defaultDatabase }
            files.databases.append(.init(database: DatabaseName.defaultDatabase, indexes: path, rules: nil))
            files.missingIndexes.removeAll { $0.database == DatabaseName.defaultDatabase }
        }
        if settings.requiresIndexes, let missing = files.missingIndexes.first {
            throw .configuration("\(missing.sentence) With --require-indexes it has to be.")
        }
        do throws(Status) {
            settings.indexes = try files.indexConfigurations()
        } catch {
            throw .configuration(error.message)
        }
        settings.indexFiles = files.databases.compactMap(\.indexes)
        for (_, configuration) in settings.indexes.sorted(by: { $0.key < $1.key }) {
            settings.warnings += configuration.warnings
        }
    }

    private func resolveRules(_ files: ProjectFiles, _ settings: inout ServeSettings) {
        for database in files.databases { settings.rules[database.database] = database.rules }
        if let path = origin("rules")?.string { settings.rules[DatabaseName.defaultDatabase] = path }
        if settings.rules.isEmpty, settings.databaseRules == nil, !settings.isEmulator {
            settings.warnings.append(
                "There are no security rules: only administrators may read and write. Name some with --rules.")
        }
        if !settings.isEmulator, settings.identity.isEmpty {
            settings.warnings.append(
                "No issuer of tokens and no credential is configured (\"auth\" in hearth.json): all clients are anonymous."
            )
        }
        let (issuers, keys) = (settings.identity.issuers, settings.identity.keys)
        let isNoneForProject = !issuers.contains { UTF8Order.equal($0.tokenProject, settings.project) }
        if !settings.isEmulator, !settings.identity.sharesSignIn, !issuers.isEmpty, keys.isEmpty, isNoneForProject {
            settings.warnings.append(
                "No issuer's tokens are for the project \"\(settings.project)\": name it in \"project\" of the issuer, unless other projects are used."
            )
        }
        if settings.isEmulator,
            let host = [settings.host, settings.databaseHost].compactMap({ $0 }).first(where: { !Self.isLoopback($0) })
        {
            settings.warnings.append("--emulator on \(host): every client that reaches the port may do everything.")
        }
    }

    /// Whether only this machine reaches an address.
    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }
}
