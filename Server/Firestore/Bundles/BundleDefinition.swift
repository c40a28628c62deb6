import HearthHost
import HearthBundle
import HearthModel
import HearthDocuments
import HearthWire

/// The contents of a bundle: under `bundles` in `hearth.json`, saved in a database, or in its own file.
///
///     {
///       "id": "front-page", "project": "my-app", "database": "(default)",
///       "documents": ["settings/site"],
///       "queries": {
///         "latest": {"collection": "stories", "conditions": [{"orderBy": ["at", "desc"]}, {"limit": 50}]},
///         "photos": {"collectionGroup": "photos", "conditions": [{"where": ["stars", ">=", 4]}]},
///         "any": {"parent": "users/eva", "structuredQuery": {"from": [{"collectionId": "posts"}]}, "limitType": "FIRST"}
///       },
///       "public": true, "maxAge": 300, "sharedMaxAge": 60
///     }
///
/// The queries' conditions have the form of Firebase's own bundle builder.
package struct BundleDefinition: Sendable, Equatable {
    package struct NamedQuery: Sendable {
        package var name: String
        package var parent: ResourceName
        /// The query as the user wrote it: not reversed for the last results.
        package var message: StructuredQueryMessage
        package var limitType: BundleQuery.LimitType

        /// - Throws: INVALID_ARGUMENT when no client could load it, or the service rejects it.
        package init(
            name: String, parent: ResourceName, message: StructuredQueryMessage, limitType: BundleQuery.LimitType
        ) throws(Status) {
            self.name = name
            self.parent = parent
            self.message = message
            self.limitType = message.limit == nil ? .first : limitType
            _ = try NormalizedQuery(try BundleQueryCheck.query(executed, parent: parent))
        }

        /// The query to run: for the last results in the opposite order; the results are then reversed.
        package var executed: StructuredQueryMessage {
            get throws(Status) { limitType == .last ? try message.reversed() : message }
        }
    }

    /// The bundle's id.
    package var id: String
    package var database: DatabaseName
    package var documents: [ResourceName] = []
    package var queries: [NamedQuery] = []
    /// Whether anybody may fetch it.
    package var isPublic = false
    /// Seconds for which caches may store it, and for which it is not built again.
    package var maxAgeSeconds = 0
    /// The same for shared caches; nil: as `maxAgeSeconds`.
    package var sharedMaxAgeSeconds: Int?
    /// The definition as JSON, in which it is compared and saved.
    package private(set) var string: [UInt8] = []

    package init(id: String, database: DatabaseName) {
        self.id = id
        self.database = database
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.database == right.database && left.id == right.id && left.string == right.string
    }

    // MARK: Reading

    private static let members = [
        "id", "project", "database", "documents", "queries", "public", "maxAge", "sharedMaxAge",
    ]
    private static let secondsMax = 31_536_000

    /// - Parameters:
    ///   - name: the id when the definition has none.
    ///   - database: the database when the definition names none.
    /// - Throws: INVALID_ARGUMENT, with file, line and member.
    package init(_ value: ConfigurationValue, name: String, database fallback: DatabaseName) throws(Status) {
        for member in try value.members() where !Self.members.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: Self.members))")
        }
        id = try value.member("id")?.string() ?? name
        database = DatabaseName(
            project: try value.member("project")?.string() ?? fallback.project,
            database: try value.member("database")?.string() ?? fallback.database)
        for document in try value.member("documents")?.elements() ?? [] {
            let path = try document.string()
            documents.append(
                try document.located { () throws(Status) in
                    try ResourceName(document: "\(database.documentsRoot)/\(path)")
                })
        }
        for member in try value.member("queries")?.members() ?? [] {
            if queries.contains(where: { UTF8Order.equal($0.name, member.name) }) {
                throw member.value.failure("There are two queries of this name.")
            }
            queries.append(try BundleQueryCoding.query(member.value, name: member.name, database: database))
        }
        isPublic = try value.member("public")?.boolean() ?? false
        maxAgeSeconds = try value.member("maxAge")?.integer(0...Self.secondsMax) ?? 0
        sharedMaxAgeSeconds = try value.member("sharedMaxAge")?.integer(0...Self.secondsMax)
        string = value.json
        try validate(value)
    }

    private func validate(_ value: ConfigurationValue) throws(Status) {
        if id.isEmpty { throw value.failure("A bundle needs an id.") }
        if queries.isEmpty, documents.isEmpty { throw value.failure("A bundle needs queries or documents.") }
        if queries.count > Limits.bundleQueriesMax {
            throw value.failure("A bundle has at most \(Limits.bundleQueriesMax) queries.")
        }
        if documents.count > Limits.bundleDocumentsNamedMax {
            throw value.failure(
                "A definition names at most \(Limits.bundleDocumentsNamedMax) documents; use a query for more.")
        }
    }

    /// Reads a definition from its own file.
    /// - Parameter file: its name, for messages.
    package init(json string: [UInt8], file: String, name: String, database: DatabaseName) throws(Status) {
        if string.count > Limits.bundleDefinitionSizeBytesMax {
            throw .invalidArgument("\(file): A definition has at most \(Limits.bundleDefinitionSizeBytesMax) bytes.")
        }
        try self.init(try ConfigurationValue(parsing: string, file: file), name: name, database: database)
    }

    /// Whether a name can be part of a URL without escaping.
    package static func isName(_ name: String) -> Bool {
        (1...100).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { byte in
                let letter = byte | 0x20
                return (letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z"))
                    || byte &- UInt8(ascii: "0") < 10 || "-_.".utf8.contains(byte)
            }
    }

    /// Reads `bundles` of `hearth.json`: definitions by name.
    package static func definitions(
        _ value: ConfigurationValue, project: String
    ) throws(Status) -> [String: BundleDefinition] {
        var definitions: [String: BundleDefinition] = [:]
        for member in try value.members() {
            guard isName(member.name) else {
                throw member.value.failure("A bundle's name has letters, digits, \"-\", \"_\" and \".\" only.")
            }
            definitions[member.name] = try BundleDefinition(
                member.value, name: member.name, database: DatabaseName(project: project))
        }
        return definitions
    }
}

extension ConfigurationValue {
    /// Adds the location of a value to an error.
    func located<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) { return try body() } catch { throw failure(error.message) }
    }

    /// The value as JSON, compact.
    var json: [UInt8] {
        var writer = JSONWriter()
        append(to: &writer)
        return writer.bytes
    }

    private func append(to writer: inout JSONWriter) {
        switch content {
        case .null: writer.raw("null")
        case .boolean(let value): writer.bool(value)
        case .number(let number):
            if let integer = Int64(exactly: number) { writer.integer(integer) } else { writer.double(number) }
        case .string(let string): writer.string(string)
        case .array(let elements):
            writer.raw("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.raw(",") }
                element.append(to: &writer)
            }
            writer.raw("]")
        case .object(let members):
            writer.raw("{")
            for (index, member) in members.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.string(member.name)
                writer.raw(":")
                member.value.append(to: &writer)
            }
            writer.raw("}")
        }
    }
}
