import HearthModel

// Sources: firebase-tools `src/config.ts`, `src/rc.ts`, `src/firestore/fsConfig.ts`, `src/database/rulesConfig.ts`,
// `src/emulator/controller.ts` and `schema/firebase-config.json`.

extension ProjectFiles {
    /// Reads the files of a folder. All of them are optional.
    /// - Parameter project: the id or alias of the project whose targets count; nil for that of the files.
    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION, with file, line and member.
    package init(folder: String, project: String? = nil) throws(Status) {
        self.init()
        func file(_ name: String) -> String {
            name.hasPrefix("/") || folder.isEmpty || folder == "." ? name : "\(folder)/\(name)"
        }
        let projects = try readProjects(file(".firebaserc"))
        guard let root = try readRoot(file("firebase.json")) else {
            if try TextFile.read(file("database.rules.json")) != nil { realtime.rules = file("database.rules.json") }
            let indexes =
                try TextFile.read(file("firestore.indexes.json")) == nil ? nil : file("firestore.indexes.json")
            let rules = try TextFile.read(file("firestore.rules")) == nil ? nil : file("firestore.rules")
            if indexes != nil || rules != nil {
                databases = [
                    DatabaseFiles(database: DatabaseName.defaultDatabase, indexes: indexes, rules: rules)
                ]
            }
            return
        }
        for member in try root.members() {
            if let nearest = Spelling.nearest(to: member.name, among: Self.members), nearest != member.name {
                warn(member.value, "Unknown member, ignored; did you mean \"\(nearest)\"?")
            }
        }
        if let value = try root.member("firebase"), defaultProject == nil {
            defaultProject = try value.string()
            warn(value, "The project belongs into .firebaserc: {\"projects\": {\"default\": \"…\"}}.")
        }
        let targets = Targets(projects, project: project ?? defaultProject)
        try readFirestore(try present("firestore", in: root), targets, file)
        try readRealtime(try present("database", in: root), oldRules: try root.member("rules"), targets, file)
        try readEmulators(try object("emulators", in: root))
    }

    /// Of `firebase.json`, as far as another one may be meant for it.
    private static let members = [
        "firestore", "database", "emulators", "functions", "hosting", "storage", "remoteconfig", "extensions",
        "dataconnect", "apphosting", "auth", "ailogic", "$schema", "firebase", "rules",
    ]

    private mutating func warn(_ value: ConfigurationValue, _ sentence: String) {
        warnings.append(value.failure(sentence).message)
    }

    private mutating func noteUnknown(in value: ConfigurationValue, among known: [String]) throws(Status) {
        for member in try value.members() where !known.contains(member.name) {
            warn(member.value, "Unknown member, ignored\(Spelling.hint(for: member.name, among: known))")
        }
    }

    // MARK: Files

    /// `.firebaserc`. Firebase's tools warn of one that is damaged, and go on without it.
    private mutating func readProjects(_ path: String) throws(Status) -> ConfigurationValue? {
        guard let bytes = try TextFile.read(path) else { return nil }
        let root: ConfigurationValue
        do throws(Status) {
            let source = try ConfigurationFile(parsing: bytes, file: path)
            root = source.root
            warnings += source.warnings
        } catch {
            warnings.append("\(error.message) The file is ignored: no project and no target is known.")
            return nil
        }
        guard case .object = root.content else {
            warn(root, "Expected an object; the file is ignored: no project and no target is known.")
            return nil
        }
        guard let projects = try object("projects", in: root) else { return root }
        let aliases = try projects.members()
        // With one alias alone, whatever it is, Firebase's tools use its project.
        if let project = try projects.member("default") ?? (aliases.count == 1 ? aliases[0].value : nil) {
            if case .string(let name) = project.content, !name.isEmpty {
                defaultProject = name
            } else {
                warn(project, "Expected the id of a project; it is ignored.")
            }
        }
        return root
    }

    private mutating func readRoot(_ path: String) throws(Status) -> ConfigurationValue? {
        guard let bytes = try TextFile.read(path) else { return nil }
        if bytes.isEmpty {
            // Files of rules beside it stay in force.
            warnings.append("\(path):1:1: The file is empty, and counts as absent.")
            return nil
        }
        let source = try ConfigurationFile(parsing: bytes, file: path)
        warnings += source.warnings
        return source.root
    }

    // MARK: Members

    /// A member that is neither absent nor false.
    private mutating func present(_ name: String, in value: ConfigurationValue) throws(Status) -> ConfigurationValue? {
        guard let member = try value.member(name) else { return nil }
        guard member.isFalse else { return member }
        warn(member, "This counts as absent.")
        return nil
    }

    /// A member of which Firebase's tools read only members: whatever else it is has no effect.
    private mutating func object(_ name: String, in value: ConfigurationValue) throws(Status) -> ConfigurationValue? {
        guard let member = try value.member(name) else { return nil }
        if case .object = member.content { return member }
        warn(member, "Expected an object; it is ignored.")
        return nil
    }

    /// Firebase's tools convert a port to a string and read the digits at its start.
    private mutating func port(in value: ConfigurationValue, least: Int) throws(Status) -> Int? {
        guard let member = try value.member("port") else { return nil }
        let shown: String
        switch member.content {
        case .string(let string): shown = string
        case .number(let number) where number != number.rounded(): shown = "\(number)"
        case .boolean(false): shown = ""
        default: return try member.integer(least...65_535)
        }
        if shown.isEmpty {
            warn(member, "This counts as absent.")
            return nil
        }
        let digits = shown.drop { $0 == " " }.prefix { $0.isASCII && $0.isNumber }
        guard let port = Int(digits), (max(1, least)...65_535).contains(port) else {
            throw member.failure("Expected a number from \(least) to 65535.")
        }
        warn(member, "A port is a number; \(port) is used.")
        return port
    }

    private mutating func host(in value: ConfigurationValue) throws(Status) -> String? {
        try present("host", in: value).map { host throws(Status) in try host.string() }
    }

    private mutating func readEmulators(_ emulators: ConfigurationValue?) throws(Status) {
        guard let emulators else { return }
        if let emulator = try object("firestore", in: emulators) {
            try noteUnknown(in: emulator, among: ["host", "port", "websocketPort", "edition"])
            host = try self.host(in: emulator)
            port = try self.port(in: emulator, least: 0)
        }
        if let emulator = try object("functions", in: emulators), let port = try self.port(in: emulator, least: 1) {
            let host = try self.host(in: emulator) ?? "127.0.0.1"
            functionsAddress = (host.contains(":") ? "[\(host)]" : host) + ":\(port)"
        }
        if let emulator = try object("database", in: emulators) {
            try noteUnknown(in: emulator, among: ["host", "port"])
            realtime.host = try self.host(in: emulator)
            realtime.port = try self.port(in: emulator, least: 0)
        }
    }

    /// The path of a rules file. Without a name the data would be open that the member was written for.
    private func rules(of value: ConfigurationValue) throws(Status) -> String? {
        guard let member = try value.member("rules") else { return nil }
        let name = try member.string()
        if name.isEmpty { throw member.failure("Expected the name of a file.") }
        return name
    }

    // MARK: Databases

    /// `database` is one object, or a list with one for each namespace (`instance`) or for each target (`target`), a
    /// name for several namespaces that `.firebaserc` defines.
    /// - Parameter oldRules: the member at the top of the file, where the rules of the database once were.
    private mutating func readRealtime(
        _ value: ConfigurationValue?, oldRules: ConfigurationValue?, _ targets: Targets, _ path: (String) -> String
    ) throws(Status) {
        if let oldRules {
            if case .array? = value?.content {
                throw oldRules.failure("The rules of a list of databases belong to its elements.")
            }
            warn(oldRules, "The rules belong into \"database\": {\"rules\": …}.")
            realtime.rules = path(try oldRules.string())
        }
        guard let value else { return }
        guard case .array(let entries) = value.content else {
            try noteUnknown(in: value, among: ["rules", "predeploy", "postdeploy"])
            // Paths are relative to firebase.json.
            if realtime.rules == nil { realtime.rules = try self.rules(of: value).map(path) }
            return
        }
        for entry in entries {
            try noteUnknown(in: entry, among: ["instance", "target", "rules", "predeploy", "postdeploy"])
            guard let rules = try self.rules(of: entry).map(path) else {
                throw entry.failure("The member \"rules\" is missing.")
            }
            var names = try entry.member("instance").map { value throws(Status) in [try value.string()] } ?? []
            if let target = try entry.member("target") {
                names += try self.names(of: target, type: "database", targets)
            } else if names.isEmpty {
                realtime.rules = rules
            }
            for name in names {
                if let former = realtime.rulesByName[name], former != rules {
                    warn(entry, "The database \(name) has rules already, in \(former); these count.")
                }
                realtime.rulesByName[name] = rules
            }
        }
    }

    /// The databases or namespaces that a target of `firebase.json` names.
    /// - Throws: INVALID_ARGUMENT for a target that `.firebaserc` lacks: without its databases its rules protect nothing.
    private mutating func names(
        of target: ConfigurationValue, type: String, _ targets: Targets
    ) throws(Status) -> [String] {
        let name = try target.string()
        guard let value = try targets.value(type: type, name: name) else {
            let project = targets.project.map { "the project \($0)" } ?? "a project, for none is named"
            throw target.failure(
                "The target \(name) is not in .firebaserc (targets, of type \(type)) for \(project), so that its rules would "
                    + "have no effect. Define it with `firebase target:apply \(type) \(name) NAME`, or write the database's name."
            )
        }
        if case .string(let single) = value.content {
            warn(value, "Expected a list; it counts as one with this element.")
            return [single]
        }
        let names = try value.elements().map { name throws(Status) in try name.string() }
        if names.isEmpty { throw value.failure("The target \(name) names no database.") }
        return names
    }

    /// `firestore` is one object, or a list with one for each database or for each target.
    private mutating func readFirestore(
        _ value: ConfigurationValue?, _ targets: Targets, _ path: (String) -> String
    ) throws(Status) {
        guard let value else { return }
        var known = [
            "database", "rules", "indexes", "location", "edition", "dataAccessMode", "predeploy", "postdeploy",
        ]
        var entries = [value]
        if case .array(let elements) = value.content {
            entries = elements
            known.append("target")
        }
        for entry in entries {
            try noteUnknown(in: entry, among: known)
            var names = [try entry.member("database")?.string() ?? DatabaseName.defaultDatabase]
            if known.contains("target"), let target = try entry.member("target") {
                names = try self.names(of: target, type: "firestore", targets)
            }
            // Paths are relative to firebase.json.
            let rules = try self.rules(of: entry).map(path)
            for name in names {
                let files = DatabaseFiles(
                    database: name, indexes: try self.indexes(of: entry, name, path), rules: rules)
                guard let former = databases.first(where: { $0.database == name }) else {
                    databases.append(files)
                    continue
                }
                if former != files { throw entry.failure("The database \(name) is in the list more than once.") }
                warn(entry, "The database \(name) is in the list more than once.")
            }
        }
    }

    /// Firebase's tools look for the file of indexes only when they deploy it.
    private mutating func indexes(
        of entry: ConfigurationValue, _ database: String, _ path: (String) -> String
    ) throws(Status) -> String? {
        guard let member = try present("indexes", in: entry) else { return nil }
        let file = path(try member.string())
        if try TextFile.read(file) != nil { return file }
        let sentence = member.failure("The index file \(file) is not there.").message
        warnings.append(sentence)
        missingIndexes.append(MissingIndexes(database: database, sentence: sentence))
        return nil
    }
}

/// The targets of `.firebaserc`: names for resources of a project.
private struct Targets {
    private let root: ConfigurationValue?
    let project: String?

    init(_ root: ConfigurationValue?, project: String?) {
        self.root = root
        self.project = project
    }

    /// `targets.PROJECT.TYPE.NAME`, of the project, or of the one that an alias names; nil without one.
    func value(type: String, name: String) throws(Status) -> ConfigurationValue? {
        guard let root, let project, let targets = try root.member("targets") else { return nil }
        var ids = [project]
        if case .object? = try root.member("projects")?.content,
            case .string(let id)? = try root.member("projects")?.member(project)?.content
        {
            ids.append(id)
        }
        for id in ids {
            if let value = try targets.member(id)?.member(type)?.member(name) { return value }
        }
        return nil
    }
}
