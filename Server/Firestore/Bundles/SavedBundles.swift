import HearthModel
import HearthDocuments
import HearthWire

/// Definitions of bundles that are saved in their database, by name.
struct SavedBundles: Sendable {
    let database: Database

    private static let note = "bundles"

    func definition(_ name: String) throws(Status) -> BundleDefinition? {
        guard case .string(let string)? = try database.note(Self.note)?[name] else { return nil }
        return try parse(Array(string.utf8), name: name)
    }

    /// In the order of their names.
    func all() throws(Status) -> [(name: String, string: [UInt8])] {
        var definitions: [(name: String, string: [UInt8])] = []
        for field in try database.note(Self.note)?.fields ?? [] {
            if case .string(let string) = field.value { definitions.append((field.name, Array(string.utf8))) }
        }
        return definitions
    }

    /// Saves a definition; one of the same name is replaced.
    /// - Throws: INVALID_ARGUMENT when it is not valid.
    func save(
        _ name: String, _ string: [UInt8], completion: @escaping @Sendable (Result<BundleDefinition, Status>) -> Void
    ) throws(Status) {
        let definition = try parse(string, name: name)
        if definition.database != database.name {
            throw .invalidArgument("The definition is of \(definition.database), but is saved in \(database.name).")
        }
        let saved = String(decoding: definition.string, as: UTF8.self)
        database.changeNote(
            Self.note,
            { present throws(Status) in
                var fields = present?.fields ?? []
                fields.removeAll { UTF8Order.equal($0.name, name) }
                if fields.count >= Limits.bundleDefinitionsMax {
                    throw .resourceExhausted(
                        "A database has at most \(Limits.bundleDefinitionsMax) definitions of bundles.")
                }
                fields.append(MapValue.Field(name: name, value: .string(saved)))
                return MapValue(fields)
            }
        ) { result in completion(result.map { _ in definition }) }
    }

    /// Fails with NOT_FOUND when it does not exist.
    func delete(_ name: String, completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        database.changeNote(
            Self.note,
            { present throws(Status) in
                var fields = present?.fields ?? []
                let count = fields.count
                fields.removeAll { UTF8Order.equal($0.name, name) }
                if fields.count == count { throw Self.missing(name) }
                return MapValue(fields)
            }
        ) { result in completion(result.map { _ in }) }
    }

    static func missing(_ name: String) -> Status { .notFound("There is no bundle \"\(name)\".") }

    private func parse(_ string: [UInt8], name: String) throws(Status) -> BundleDefinition {
        try BundleDefinition(json: string, file: name, name: name, database: database.name)
    }
}
