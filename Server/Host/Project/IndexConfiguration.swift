import HearthModel
import HearthDocuments
import HearthWire

/// The contents of `firestore.indexes.json`: composite indexes, and fields whose automatic indexes are replaced.
///
///     { "indexes": [ { "collectionGroup": "posts", "queryScope": "COLLECTION",
///                      "fields": [ { "fieldPath": "tags", "arrayConfig": "CONTAINS" },
///                                  { "fieldPath": "at", "order": "DESCENDING" } ] } ],
///       "fieldOverrides": [ { "collectionGroup": "posts", "fieldPath": "body", "indexes": [] } ] }
///
/// Source: "Cloud Firestore index definition format" in the Firebase tools' documentation. The older names
/// `collectionId` and `mode` are accepted as well.
package struct IndexConfiguration: Sendable, Equatable {
    /// Without ids.
    package var indexes: [IndexDefinition] = []
    package var overrides: [FieldOverride] = []
    /// The overrides that say nothing of expiry, by their numbers: a policy of the field stays.
    private var keepingPolicy: Set<Int> = []
    /// Sentences about members that have no effect.
    package var warnings: [String] = []

    package init(indexes: [IndexDefinition] = [], overrides: [FieldOverride] = []) {
        self.indexes = indexes
        self.overrides = overrides
    }

    /// - Throws: INVALID_ARGUMENT with file, line and the path of the member that is wrong.
    package init(parsing string: [UInt8], file: String) throws(Status) {
        let source = try ConfigurationFile(parsing: string, file: file)
        let root = source.root
        warnings = source.warnings
        if try root.member("indexes") == nil {
            warn(root, "The member \"indexes\" is missing: Firebase's tools deploy nothing of such a file.")
        }
        for member in try root.members() where member.name != "indexes" && member.name != "fieldOverrides" {
            warn(
                member.value,
                "Unknown member\(Spelling.hint(for: member.name, among: ["indexes", "fieldOverrides"]))")
        }
        for element in try root.member("indexes")?.elements() ?? [] { try addIndex(element) }
        for element in try root.member("fieldOverrides")?.elements() ?? [] { try addOverride(element) }
    }

    private mutating func warn(_ value: ConfigurationValue, _ sentence: String) {
        warnings.append(value.failure(sentence).message)
    }

    // MARK: Reading indexes

    private static let indexMembers = [
        "collectionGroup", "collectionId", "queryScope", "fields", "density", "apiScope", "multikey", "unique",
    ]

    private mutating func addIndex(_ value: ConfigurationValue) throws(Status) {
        try noteUnknown(in: value, among: Self.indexMembers)
        try noteIgnored(in: value)
        let list = try Self.required("fields", in: value)
        var fields: [IndexField] = []
        for element in try list.elements() {
            try noteUnknown(
                in: element, among: ["fieldPath", "order", "arrayConfig", "vectorConfig", "searchConfig", "mode"])
            if let search = try element.member("searchConfig") {
                warn(search, "A search index belongs to the Enterprise edition; this index is ignored.")
                return
            }
            fields.append(
                IndexField(
                    path: try Self.path(try Self.required("fieldPath", in: element)), kind: try Self.kind(element)))
        }
        let draft = IndexDraft(
            collectionID: try Self.collection(value), scope: try Self.scope(value), fields: fields)
        let definition = try Self.at(value) { () throws(Status) in try draft.definition() }
        // `firebase firestore:indexes` and the console write the name that others leave out, so that files have both.
        if indexes.contains(where: { $0.isSame(as: definition) }) {
            warn(value, "This index is in the file more than once.")
        } else {
            indexes.append(definition)
        }
    }

    /// The Standard edition has one value of each of these; others belong to the Enterprise edition.
    private mutating func noteIgnored(in value: ConfigurationValue) throws(Status) {
        let standard = ["density": "SPARSE_ALL", "apiScope": "ANY_API"]
        for (name, usual) in standard.sorted(by: { $0.key < $1.key }) {
            guard let member = try value.member(name) else { continue }
            let string = try member.string()
            if string != usual { warn(member, "\(string) belongs to the Enterprise edition and is ignored.") }
        }
        for name in ["multikey", "unique"] {
            guard let member = try value.member(name) else { continue }
            if try member.boolean() { warn(member, "This belongs to the Enterprise edition and is ignored.") }
        }
    }

    private mutating func noteUnknown(in value: ConfigurationValue, among known: [String]) throws(Status) {
        for member in try value.members() where !known.contains(member.name) {
            warn(member.value, "Unknown member, ignored\(Spelling.hint(for: member.name, among: known))")
        }
    }

    // MARK: Reading overrides

    private mutating func addOverride(_ value: ConfigurationValue) throws(Status) {
        try noteUnknown(in: value, among: ["collectionGroup", "collectionId", "fieldPath", "ttl", "indexes"])
        let pathValue = try Self.required("fieldPath", in: value)
        let isWildcard = try pathValue.string() == "*"
        let path = isWildcard ? nil : try Self.path(pathValue)
        if path?.isDocumentName == true { throw pathValue.failure("__name__ can't be configured.") }
        let ttl = try value.member("ttl")?.boolean()
        let isTimeToLive = ttl ?? false
        if isTimeToLive, isWildcard { throw pathValue.failure("Only a single field can be a time-to-live field.") }
        let collectionID = try Self.collection(value)
        // Without a list the field keeps its automatic indexes; an empty list is an exemption.
        var indexes = FieldOverride.automaticIndexes
        if let list = try value.member("indexes") {
            indexes = []
            for element in try list.elements() {
                try noteUnknown(
                    in: element,
                    among: ["queryScope", "order", "arrayConfig", "mode", "density", "apiScope", "multikey", "unique"])
                try noteIgnored(in: element)
                let index = FieldOverride.Index(scope: try Self.scope(element), kind: try Self.kind(element))
                if case .vector = index.kind {
                    throw element.failure("A vector index is a composite index; it belongs under \"indexes\".")
                }
                if isWildcard, index.scope == .collectionGroup {
                    warn(element, "Indexes of collection group scope on all fields are not stored; name the fields.")
                } else if !indexes.contains(index) {
                    indexes.append(index)
                }
            }
        }
        let override = FieldOverride(
            collectionID: collectionID, path: path, indexes: indexes, timeToLive: isTimeToLive ? .init() : nil)
        if let former = overrides.firstIndex(where: { $0.isSameField(as: override) }) {
            let isSame =
                Set(overrides[former].indexes) == Set(indexes) && (overrides[former].timeToLive != nil) == isTimeToLive
            warn(
                value,
                isSame
                    ? "This field is in the file more than once."
                    : "This field is in the file more than once, with other settings; the last ones count.")
            removeOverride(former)
        }
        if isTimeToLive,
            overrides.contains(where: { $0.timeToLive != nil && UTF8Order.equal($0.collectionID, collectionID) })
        {
            throw value.failure("A collection group can have one time-to-live field only.")
        }
        if ttl == nil { keepingPolicy.insert(overrides.count) }
        overrides.append(override)
    }

    private mutating func removeOverride(_ number: Int) {
        overrides.remove(at: number)
        keepingPolicy = Set(keepingPolicy.filter { $0 != number }.map { $0 > number ? $0 - 1 : $0 })
    }

    // MARK: Reading members

    private static func required(_ name: String, in value: ConfigurationValue) throws(Status) -> ConfigurationValue {
        guard let member = try value.member(name) else { throw value.failure("The member \"\(name)\" is missing.") }
        return member
    }

    /// Adds the location of a value to the error of a check that does not know it.
    private static func at<Product>(
        _ value: ConfigurationValue, _ body: () throws(Status) -> Product
    ) throws(Status) -> Product {
        do throws(Status) {
            return try body()
        } catch {
            throw value.failure(error.message)
        }
    }

    private static func collection(_ value: ConfigurationValue) throws(Status) -> String {
        var member = try value.member("collectionGroup")
        if member == nil { member = try value.member("collectionId") }
        guard let member else {
            throw value.failure("The member \"collectionGroup\" is missing.")
        }
        let string = try member.string()
        try at(member) { () throws(Status) in try ResourceName.validate(collectionID: string) }
        return string
    }

    private static func path(_ value: ConfigurationValue) throws(Status) -> FieldPath {
        let string = try value.string()
        return try at(value) { () throws(Status) in try FieldPath(parsing: string) }
    }

    private static func scope(_ value: ConfigurationValue) throws(Status) -> IndexDefinition.Scope {
        guard let member = try value.member("queryScope") else { return .collection }
        switch try member.string() {
        case IndexDefinition.Scope.collection.rawValue: return .collection
        case IndexDefinition.Scope.collectionGroup.rawValue: return .collectionGroup
        default: throw member.failure("Expected COLLECTION or COLLECTION_GROUP.")
        }
    }

    private static func kind(_ value: ConfigurationValue) throws(Status) -> IndexField.Kind {
        var kinds: [IndexField.Kind] = []
        if let member = try value.member("order") { kinds.append(try order(member)) }
        if let member = try value.member("arrayConfig") {
            guard try member.string() == "CONTAINS" else { throw member.failure("Expected CONTAINS.") }
            kinds.append(.contains)
        }
        if let member = try value.member("mode") {
            kinds.append(try member.string() == "ARRAY_CONTAINS" ? .contains : try order(member))
        }
        if let member = try value.member("vectorConfig") {
            let dimension = try required("dimension", in: member).integer(1...Limits.vectorDimensionMax)
            kinds.append(.vector(dimension: dimension))
        }
        guard kinds.count == 1 else {
            throw value.failure("Expected exactly one of \"order\", \"arrayConfig\" and \"vectorConfig\".")
        }
        return kinds[0]
    }

    private static func order(_ value: ConfigurationValue) throws(Status) -> IndexField.Kind {
        switch try value.string() {
        case "ASCENDING": return .ascending
        case "DESCENDING": return .descending
        default: throw value.failure("Expected ASCENDING or DESCENDING.")
        }
    }

    // MARK: Use

    /// Updates a database's catalog to this file: adds missing indexes and replaces the overrides of fields in the
    /// file. Indexes, overrides and policies of expiry created with the admin API stay, as when the Firebase tools deploy
    /// without `--force`; but a collection group has one policy.
    package func apply(to database: Database, completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        database.changeCatalog(
            resuming: true,
            { [self] catalog in (catalog.ownDefinitions + indexes, merged(with: catalog.overrides)) },
            completion: completion)
    }

    private func merged(with present: [FieldOverride]) -> [FieldOverride] {
        var merged = overrides
        for index in merged.indices where keepingPolicy.contains(index) {
            merged[index].timeToLive = present.first { $0.isSameField(as: merged[index]) }?.timeToLive
        }
        // A file that names another field for the policy of a group replaces it.
        let groups = overrides.filter { $0.timeToLive != nil }
        func hasPolicy(_ override: FieldOverride) -> Bool {
            groups.contains { UTF8Order.equal($0.collectionID, override.collectionID) }
        }
        for index in merged.indices where overrides[index].timeToLive == nil && hasPolicy(merged[index]) {
            merged[index].timeToLive = nil
        }
        let others = present.filter { other in !overrides.contains { $0.isSameField(as: other) } }
        return merged
            + others.map { other in
                var other = other
                if hasPolicy(other) { other.timeToLive = nil }
                return other
            }
    }
}
