import HearthModel

/// The name of a collection group: `projects/P/databases/D/collectionGroups/G`.
struct CollectionGroupName: Hashable {
    var database: DatabaseName
    /// `-` for all, in lists; `__default__` for the inherited settings.
    var collectionID: String

    static let all = "-"
    static let defaults = "__default__"

    var string: String { "\(database.string)/collectionGroups/\(collectionID)" }

    init(database: DatabaseName, collectionID: String) {
        self.database = database
        self.collectionID = collectionID
    }

    init(parsing string: String) throws(Status) {
        let (name, rest) = try Self.split(string)
        guard rest.isEmpty else { throw Self.malformed(string) }
        self = name
    }

    /// Splits the name and the segments after it.
    static func split(_ string: String) throws(Status) -> (CollectionGroupName, rest: [String]) {
        let segments = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard segments.count >= 6, segments[0] == "projects", segments[2] == "databases",
            segments[4] == "collectionGroups", !segments[1].isEmpty, !segments[3].isEmpty
        else { throw malformed(string) }
        let collectionID = segments[5]
        if collectionID != all, collectionID != defaults { try ResourceName.validate(collectionID: collectionID) }
        let database = DatabaseName(project: segments[1], database: segments[3])
        return (CollectionGroupName(database: database, collectionID: collectionID), Array(segments[6...]))
    }

    private static func malformed(_ string: String) -> Status {
        .invalidArgument(
            "Invalid name \"\(string)\": expected projects/{project}/databases/{database}/collectionGroups/{collection}."
        )
    }

    /// Fails unless the name is of one group.
    func checkSingle() throws(Status) {
        if collectionID == Self.all {
            throw .invalidArgument("\"-\" means all collection groups and is only allowed in lists.")
        }
    }
}
