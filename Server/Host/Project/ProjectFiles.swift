import HearthModel

/// The files of a Firebase project that concern the server: `firebase.json`, `.firebaserc`, and the index files that
/// they name.
///
/// Members of other products are ignored. What Firebase's tools take is taken, with a warning; what they refuse, and what
/// would leave data open that rules are meant for, is refused. Without `firebase.json`, a `firestore.indexes.json` and a `firestore.rules`
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

    /// `projects.default` of `.firebaserc`, or its only project.
    package var defaultProject: String?
    /// `emulators.firestore.host` and `.port` of `firebase.json`.
    package var host: String?
    package var port: Int?
    /// `emulators.functions.host` and `.port`, with an IPv6 address in brackets; nil without a port.
    package var functionsAddress: String?
    package var databases: [DatabaseFiles] = []
    /// The files of the Realtime Database.
    package var realtime = RealtimeFiles()
    /// A sentence for each index file that `firebase.json` names and that is not there.
    package var missingIndexes: [MissingIndexes] = []
    /// Sentences about flaws that Firebase's tools take, and about settings that have no effect.
    package var warnings: [String] = []

    package struct MissingIndexes: Sendable, Equatable {
        package var database: String
        package var sentence: String
    }

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
