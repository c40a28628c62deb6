import HearthModel

/// The files of a Firebase project that concern the server: `firebase.json`, `.firebaserc`, and the index files that
/// they name.
///
/// Members of other products are ignored. Without `firebase.json`, a `firestore.indexes.json` and a `firestore.rules`
/// in the folder are used for the default database, and a `database.rules.json` for the Realtime Database.
package struct ProjectFiles: Sendable, Equatable {
    package struct DatabaseFiles: Sendable, Equatable {
        package var database: String
        /// Relative to the server's working directory.
        package var indexes: String?
        package var rules: String?

        package init(database: String, indexes: String?, rules: String?) {
            self.database = database
            self.indexes = indexes
            self.rules = rules
        }
    }

    /// `projects.default` of `.firebaserc`.
    package var defaultProject: String?
    /// `emulators.firestore.host` and `.port` of `firebase.json`.
    package var host: String?
    package var port: Int?
    /// `emulators.functions.host` and `.port`, with an IPv6 address in brackets; nil without a port.
    package var functionsAddress: String?
    package var databases: [DatabaseFiles] = []
    /// The files of the Realtime Database.
    package var realtime = RealtimeFiles()
    /// Sentences about settings that have no effect.
    package var warnings: [String] = []

    package struct RealtimeFiles: Sendable, Equatable {
        /// `emulators.database.host` and `.port` of `firebase.json`.
        package var host: String?
        package var port: Int?
        /// The rules file of every namespace that has none of its own, relative to the server's working directory.
        package var rules: String?
        /// Rules files by namespace.
        package var rulesByName: [String: String] = [:]

        package init() {}
    }

    package init() {}

    /// Reads the files of a folder. All of them are optional.
    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION, with file, line and member.
    package init(folder: String) throws(Status) {
        func file(_ name: String) -> String {
            name.hasPrefix("/") || folder.isEmpty || folder == "." ? name : "\(folder)/\(name)"
        }
        var projects: ConfigurationValue?
        if let string = try TextFile.read(file(".firebaserc")) {
            let root = try ConfigurationValue(parsing: string, file: file(".firebaserc"))
            projects = root
            defaultProject = try root.member("projects")?.member("default")?.string()
        }
        if let string = try TextFile.read(file("firebase.json")) {
            let root = try ConfigurationValue(parsing: string, file: file("firebase.json"))
            try readFirestore(try root.member("firestore"), file)
            try readRealtime(try root.member("database"), projects, file)
            let emulators = try root.member("emulators")
            if let emulator = try emulators?.member("firestore") {
                host = try emulator.member("host")?.string()
                port = try emulator.member("port")?.integer(0...65_535)
            }
            if let emulator = try emulators?.member("functions"),
                let port = try emulator.member("port")?.integer(1...65_535)
            {
                let host = try emulator.member("host")?.string() ?? "127.0.0.1"
                functionsAddress = (host.contains(":") ? "[\(host)]" : host) + ":\(port)"
            }
            if let emulator = try emulators?.member("database") {
                realtime.host = try emulator.member("host")?.string()
                realtime.port = try emulator.member("port")?.integer(0...65_535)
            }
        } else {
            if try TextFile.read(file("database.rules.json")) != nil { realtime.rules = file("database.rules.json") }
            let indexes =
                try TextFile.read(file("firestore.indexes.json")) == nil ? nil : file("firestore.indexes.json")
            let rules = try TextFile.read(file("firestore.rules")) == nil ? nil : file("firestore.rules")
            if indexes != nil || rules != nil {
                databases = [
                    DatabaseFiles(database: DatabaseName.defaultDatabase, indexes: indexes, rules: rules)
                ]
            }
        }
    }

    /// `database` is one object, or a list with one for each namespace (`instance`) or for each target (`target`), a
    /// name for several namespaces that `.firebaserc` defines.
    private mutating func readRealtime(
        _ value: ConfigurationValue?, _ projects: ConfigurationValue?, _ path: (String) -> String
    ) throws(Status) {
        guard let value else { return }
        guard case .array(let entries) = value.content else {
            // Paths are relative to firebase.json.
            realtime.rules = try value.member("rules").map { rules throws(Status) in path(try rules.string()) }
            return
        }
        for entry in entries {
            guard let rules = try entry.member("rules")?.string() else { continue }
            var names = try entry.member("instance").map { value throws(Status) in [try value.string()] } ?? []
            if let target = try entry.member("target")?.string() {
                let known = try namespaces(ofTarget: target, projects)
                if known.isEmpty {
                    warnings.append(
                        "The target \(target) of firebase.json names no database in .firebaserc; its rules have no effect."
                    )
                }
                names += known
            } else if names.isEmpty {
                realtime.rules = path(rules)
            }
            for name in names { realtime.rulesByName[name] = path(rules) }
        }
    }

    /// `targets.PROJECT.database.TARGET` of `.firebaserc`.
    private func namespaces(ofTarget target: String, _ projects: ConfigurationValue?) throws(Status) -> [String] {
        guard let project = defaultProject,
            let names = try projects?.member("targets")?.member(project)?.member("database")?.member(target)
        else { return [] }
        return try names.elements().map { name throws(Status) in try name.string() }
    }

    /// `firestore` is one object, or a list with one for each database.
    private mutating func readFirestore(
        _ value: ConfigurationValue?, _ path: (String) -> String
    ) throws(Status) {
        guard let value else { return }
        var entries = [value]
        if case .array(let elements) = value.content { entries = elements }
        for entry in entries {
            let database = try entry.member("database")?.string() ?? DatabaseName.defaultDatabase
            if databases.contains(where: { $0.database == database }) {
                throw entry.failure("The database \(database) is in the list more than once.")
            }
            // Paths are relative to firebase.json.
            let indexes = try entry.member("indexes")?.string()
            let rules = try entry.member("rules")?.string()
            databases.append(
                DatabaseFiles(database: database, indexes: indexes.map(path), rules: rules.map(path)))
        }
    }

    /// The index files, by database id.
    /// - Throws: as `IndexConfiguration`, and FAILED_PRECONDITION for a missing file.
    package func indexConfigurations() throws(Status) -> [String: IndexConfiguration] {
        var configurations: [String: IndexConfiguration] = [:]
        for files in databases {
            guard let path = files.indexes else { continue }
            guard let string = try TextFile.read(path) else {
                throw .failedPrecondition("The index file \(path) is not there.")
            }
            configurations[files.database] = try IndexConfiguration(parsing: string, file: path)
        }
        return configurations
    }
}
