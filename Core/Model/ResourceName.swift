/// The name of a document, or of the parent below which a request works: `projects/P/databases/D/documents[/…]`.
@usableFromInline package struct ResourceName: Hashable, Sendable, CustomStringConvertible {
    @usableFromInline package var database: DatabaseName
    @usableFromInline package var path: ResourcePath

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
    package init(document string: String) throws(Status) {
        try self.init(document: string, called: "Document name")
    }

    /// Parses the name of a document that a value refers to.
    /// - Throws: INVALID_ARGUMENT with Google's wording.
    package init(reference string: String) throws(Status) {
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
    @usableFromInline package init(parsing string: String) throws(Status) {
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
