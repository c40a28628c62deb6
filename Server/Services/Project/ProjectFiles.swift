import HearthModel

/// The files of a Firebase project, as far as they concern the server: `firebase.json`, `.firebaserc`, and the index
/// files that they name.
///
/// Members that belong to other products are left alone. Without `firebase.json` a `firestore.indexes.json` and a
/// `firestore.rules` in the folder are taken for the default database.
public struct ProjectFiles: Sendable, Equatable {
    public struct DatabaseFiles: Sendable, Equatable {
        public var database: String
        /// Relative to where the server runs.
        public var indexes: String?
        public var rules: String?

        public init(database: String, indexes: String?, rules: String?) {
            self.database = database
            self.indexes = indexes
            self.rules = rules
        }
    }

    /// `projects.default` of `.firebaserc`.
    public var defaultProject: String?
    /// `emulators.firestore.host` and `.port` of `firebase.json`.
    public var host: String?
    public var port: Int?
    public var databases: [DatabaseFiles] = []

    public init() {}

    /// Reads the files of a folder. None of them has to be there.
    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION, with file, line and member.
    public init(folder: String) throws(Status) {
        func file(_ name: String) -> String {
            name.hasPrefix("/") || folder.isEmpty || folder == "." ? name : "\(folder)/\(name)"
        }
        if let text = try TextFile.read(file("firebase.json")) {
            let root = try ConfigurationValue(parsing: text, file: file("firebase.json"))
            try readFirestore(try root.member("firestore"), file)
            if let emulator = try root.member("emulators")?.member("firestore") {
                host = try emulator.member("host")?.string()
                port = try emulator.member("port")?.integer(0...65_535)
            }
        } else {
            let indexes =
                try TextFile.read(file("firestore.indexes.json")) == nil ? nil : file("firestore.indexes.json")
            let rules = try TextFile.read(file("firestore.rules")) == nil ? nil : file("firestore.rules")
            if indexes != nil || rules != nil {
                databases = [
                    DatabaseFiles(database: DatabaseName.defaultDatabase, indexes: indexes, rules: rules)
                ]
            }
        }
        if let text = try TextFile.read(file(".firebaserc")) {
            let root = try ConfigurationValue(parsing: text, file: file(".firebaserc"))
            defaultProject = try root.member("projects")?.member("default")?.string()
        }
    }

    /// `firestore` is one object, or a list with one for each database.
    private mutating func readFirestore(
        _ value: ConfigurationValue?, _ place: (String) -> String
    ) throws(Status) {
        guard let value else { return }
        var entries = [value]
        if case .array(let elements) = value.content { entries = elements }
        for entry in entries {
            let database = try entry.member("database")?.string() ?? DatabaseName.defaultDatabase
            if databases.contains(where: { $0.database == database }) {
                throw entry.failure("The database \(database) stands in the list more than once.")
            }
            // Paths are relative to firebase.json.
            let indexes = try entry.member("indexes")?.string()
            let rules = try entry.member("rules")?.string()
            databases.append(
                DatabaseFiles(database: database, indexes: indexes.map(place), rules: rules.map(place)))
        }
    }

    /// The index files, by database id.
    /// - Throws: as `IndexConfiguration`, and FAILED_PRECONDITION for a file that is named and not there.
    public func indexConfigurations() throws(Status) -> [String: IndexConfiguration] {
        var configurations: [String: IndexConfiguration] = [:]
        for files in databases {
            guard let path = files.indexes else { continue }
            guard let text = try TextFile.read(path) else {
                throw .failedPrecondition("The index file \(path) is not there.")
            }
            configurations[files.database] = try IndexConfiguration(parsing: text, file: path)
        }
        return configurations
    }
}
