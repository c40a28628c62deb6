/// A database of a project. Names, queries and transactions never cross databases.
@usableFromInline package struct DatabaseName: Sendable, CustomStringConvertible {
    @usableFromInline package var project: String
    @usableFromInline package var database: String

    @usableFromInline package static let defaultDatabase = "(default)"

    @inlinable package init(project: String, database: String = DatabaseName.defaultDatabase) {
        self.project = project
        self.database = database
    }

    /// `projects/P/databases/D`
    @inlinable package var string: String { "projects/\(project)/databases/\(database)" }
    /// `projects/P/databases/D/documents`
    @inlinable package var documentsRoot: String { string + "/documents" }
    @inlinable package var description: String { string }

    /// Parses `projects/P/databases/D`.
    package init(parsing string: String) throws(Status) {
        let segments = ResourcePath.split(string)
        guard segments.count == 4, segments[0] == "projects", segments[2] == "databases", !segments[1].isEmpty,
            !segments[3].isEmpty
        else {
            throw .invalidArgument(
                "Invalid database name \"\(string)\": expected projects/{project}/databases/{database}.")
        }
        self.init(project: segments[1], database: segments[3])
    }
}

extension DatabaseName: Hashable {
    @inlinable package static func == (lhs: DatabaseName, rhs: DatabaseName) -> Bool {
        UTF8Order.equal(lhs.project, rhs.project) && UTF8Order.equal(lhs.database, rhs.database)
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        UTF8Order.hash(project, into: &hasher)
        UTF8Order.hash(database, into: &hasher)
    }
}
