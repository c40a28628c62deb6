import HearthModel

/// The tables of a cache's file, and how a file of an older version becomes one of this. Each client has its own.
package struct CacheSchema: Sendable {
    /// Takes a file from the version before to `number`. What was released is never edited: a change is a new step.
    package struct Step: Sendable {
        package var number: Int
        package var string: String

        package init(number: Int, string: String) {
            self.number = number
            self.string = string
        }
    }

    /// SQLite's `application_id`, by which a cache is known from other databases.
    package var applicationID: Int
    package var steps: [Step]

    package init(applicationID: Int, steps: [Step]) {
        self.applicationID = applicationID
        self.steps = steps
    }

    /// SQLite's `user_version`.
    package var version: Int { steps.last?.number ?? 0 }

    /// The version of an opened file; 0 for a new one.
    /// - Throws: FAILED_PRECONDITION for a file that isn't a cache, or is a newer one; DATA_LOSS when it is no database.
    func version(of database: CacheDatabase) throws(Status) -> Int {
        let application = try database.number("PRAGMA application_id")
        let version = try database.number("PRAGMA user_version")
        if application != applicationID {
            let tables = try database.number("SELECT count(*) FROM sqlite_schema")
            if application != 0 || version != 0 || tables != 0 {
                throw .failedPrecondition("\(database.path) is a SQLite database, but no cache of Hearth's client.")
            }
        }
        if version > self.version {
            throw .failedPrecondition(
                "The cache \(database.path) has version \(version), which is newer than \(self.version), the newest that "
                    + "this program knows. Use a newer version of the client, or clear the persistence.")
        }
        return version
    }

    /// Brings a file to this version: all steps in one transaction, or none.
    func migrate(_ database: CacheDatabase, from version: Int) throws(Status) {
        if version == self.version { return }
        do throws(Status) {
            try database.execute("BEGIN IMMEDIATE")
            for step in steps where step.number > version { try database.execute(step.string) }
            try database.execute(
                "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(self.version); COMMIT")
        } catch {
            try database.rollBack()
            throw error
        }
    }
}
