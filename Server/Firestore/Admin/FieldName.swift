import HearthModel

/// The name of a field: `…/collectionGroups/G/fields/PATH`.
struct FieldName {
    var group: CollectionGroupName
    /// Nil for `*`, all fields of the group.
    var path: FieldPath?

    init(group: CollectionGroupName, path: FieldPath?) {
        self.group = group
        self.path = path
    }

    init(parsing string: String) throws(Status) {
        let (group, rest) = try CollectionGroupName.split(string)
        guard rest.count >= 2, rest[0] == "fields" else { throw .invalidArgument("Invalid field name \"\(string)\".") }
        self.group = group
        // A quoted field may contain a slash.
        let path = rest[1...].joined(separator: "/")
        if path != "*" {
            let parsed = try FieldPath(parsing: path)
            if parsed.isDocumentName { throw .invalidArgument("__name__ can't be configured.") }
            self.path = parsed
        }
    }

    static func defaults(of database: DatabaseName) -> FieldName {
        FieldName(
            group: CollectionGroupName(database: database, collectionID: CollectionGroupName.defaults), path: nil)
    }

    var isDefaults: Bool { group.collectionID == CollectionGroupName.defaults && path == nil }

    var string: String { "\(group.string)/fields/\(path?.string ?? "*")" }
}
