/// A database of a project. Names, queries and transactions never cross databases.
package struct DatabaseName: Sendable, CustomStringConvertible {
    package var project: String
    package var database: String

    package static let defaultDatabase = "(default)"

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

/// The segments of a name below a database: collection id, document id, collection id, …
package struct ResourcePath: Sendable, CustomStringConvertible {
    package var segments: [String]

    @inlinable package init(_ segments: [String] = []) {
        self.segments = segments
    }

    @inlinable package var isRoot: Bool { segments.isEmpty }
    @inlinable package var isDocument: Bool { !segments.isEmpty && segments.count.isMultiple(of: 2) }
    @inlinable package var isCollection: Bool { !segments.count.isMultiple(of: 2) }
    @inlinable package var parent: ResourcePath { ResourcePath(Array(segments.dropLast())) }
    @inlinable package var string: String { segments.joined(separator: "/") }
    @inlinable package var description: String { string }

    @inlinable package func appending(_ segment: String) -> ResourcePath { ResourcePath(segments + [segment]) }

    static func split(_ string: String) -> [String] {
        var string = string
        return string.withUTF8 { bytes in
            var segments: [String] = []
            segments.reserveCapacity(8)
            var start = 0
            for index in 0...bytes.count where index == bytes.count || bytes[index] == UInt8(ascii: "/") {
                segments.append(String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<index]), as: UTF8.self))
                start = index + 1
            }
            return segments
        }
    }

    /// The number in an id of the form `__id<int64>__`, the form of Datastore's numeric ids; nil for other spellings,
    /// including leading zeros.
    @inlinable
    package static func numericID(_ segment: String) -> Int64? {
        guard segment.utf8.first == UInt8(ascii: "_"), segment.utf8.count >= 7, segment.hasPrefix("__id"),
            segment.hasSuffix("__")
        else { return nil }
        let digits = segment.dropFirst(4).dropLast(2)
        guard let number = Int64(digits), String(number) == digits else { return nil }
        return number
    }

    /// Checks one collection or document id.
    /// - Parameter kind: true for a collection id.
    static func validate(_ segment: String, kind: Bool, index: Int, name: String) throws(Status) {
        if segment.isEmpty {
            throw .invalidArgument("Document name \"\(name)\" contains an empty resource id at index \(index).")
        }
        let length = segment.utf8.count
        if length > Limits.idSizeBytesMax {
            throw .invalidArgument(
                "The key path element \(kind ? "kind" : "name") is longer than \(Limits.idSizeBytesMax) bytes.")
        }
        if segment == "." || segment == ".." {
            throw .invalidArgument("Document name \"\(name)\" contains a resource id \"\(segment)\" at index \(index).")
        }
        if FieldPath.isReserved(segment), kind || numericID(segment) == nil {
            throw .invalidArgument(
                "\(kind ? "Collection" : "Resource") id \"\(segment)\" is invalid because it is reserved.")
        }
    }
}

extension ResourcePath: Hashable {
    @inlinable package static func == (lhs: ResourcePath, rhs: ResourcePath) -> Bool {
        lhs.segments.count == rhs.segments.count
            && zip(lhs.segments, rhs.segments).allSatisfy { UTF8Order.equal($0, $1) }
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        for segment in segments { UTF8Order.hash(segment, into: &hasher) }
    }
}

/// The name of a document, or of the parent below which a request works: `projects/P/databases/D/documents[/…]`.
package struct ResourceName: Hashable, Sendable, CustomStringConvertible {
    package var database: DatabaseName
    package var path: ResourcePath

    @inlinable package init(database: DatabaseName, path: ResourcePath) {
        self.database = database
        self.path = path
    }

    @inlinable package var string: String {
        path.isRoot ? database.documentsRoot : database.documentsRoot + "/" + path.string
    }
    @inlinable package var description: String { string }

    /// Parses the name of a document.
    /// - Throws: INVALID_ARGUMENT with Google's wording.
    @inlinable package init(document string: String) throws(Status) {
        try self.init(document: string, called: "Document name")
    }

    /// Parses the name of a document that a value refers to.
    /// - Throws: INVALID_ARGUMENT with Google's wording.
    @inlinable package init(reference string: String) throws(Status) {
        try self.init(document: string, called: "Resource name")
    }

    private init(document string: String, called label: String) throws(Status) {
        try self.init(parsing: string)
        if !path.isDocument {
            throw .invalidArgument("\(label) \"\(string)\" lacks \"/\" at index \(string.utf8.count).")
        }
    }

    /// Parses a parent: the root (`…/documents`) or a document.
    @inlinable package init(parent string: String) throws(Status) {
        try self.init(parsing: string)
        if path.isCollection {
            throw .invalidArgument("Document parent name \"\(string)\" lacks \"/\" at index \(string.utf8.count).")
        }
    }

    /// Parses any name below a database; each id is checked.
    /// - Parameter query: names in queries may hold ids that no document can have (NUL bytes, `__id-9…__`); they only
    ///   mark positions. Both are legal in ids anyway, so that only the limit of depth differs.
    package init(parsing string: String) throws(Status) {
        let segments = ResourcePath.split(string)
        let heads = ["projects", nil, "databases", nil, "documents"]
        var offset = 0
        for (index, head) in heads.enumerated() {
            guard index < segments.count else {
                throw .invalidArgument(
                    "Document name \"\(string)\" lacks \"\(head ?? "/")\" at index \(max(0, offset - 1)).")
            }
            if let head, segments[index] != head {
                throw .invalidArgument("Document name \"\(string)\" lacks \"\(head)\" at index \(offset).")
            }
            if head == nil, segments[index].isEmpty {
                throw .invalidArgument("Document name \"\(string)\" contains an empty resource id at index \(offset).")
            }
            offset += segments[index].utf8.count + 1
        }
        database = DatabaseName(project: segments[1], database: segments[3])
        path = ResourcePath(Array(segments.dropFirst(5)))
        try Self.validate(path, name: string)
    }

    private static func validate(_ path: ResourcePath, name: String) throws(Status) {
        if path.segments.count > Limits.pathDepthMax * 2 {
            throw .invalidArgument("Key path is too long. Cannot exceed \(Limits.pathDepthMax) elements.")
        }
        var size = 0
        for (index, segment) in path.segments.enumerated() {
            try ResourcePath.validate(segment, kind: index.isMultiple(of: 2), index: index, name: name)
            size += segment.utf8.count + 1
        }
        if size > Limits.documentNameSizeBytesMax {
            throw .invalidArgument("The document name is longer than \(Limits.documentNameSizeBytesMax) bytes.")
        }
    }

    /// Checks a collection id that is a separate argument.
    @inlinable package static func validate(collectionID: String) throws(Status) {
        if collectionID.utf8.contains(UInt8(ascii: "/")) {
            throw .invalidArgument("Collection id \"\(collectionID)\" is invalid because it contains \"/\".")
        }
        try ResourcePath.validate(collectionID, kind: true, index: 0, name: collectionID)
    }

    /// Checks a document id that is a separate argument.
    @inlinable package static func validate(documentID: String) throws(Status) {
        if documentID.utf8.contains(UInt8(ascii: "/")) {
            throw .invalidArgument("Document id \"\(documentID)\" is invalid because it contains \"/\".")
        }
        try ResourcePath.validate(documentID, kind: false, index: 0, name: documentID)
    }
}
