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
        var string = string
        guard let parts = string.withUTF8({ Self.parts(of: $0) }) else { throw Self.malformed(string) }
        database = DatabaseName(project: parts.project, database: parts.database)
        path = ResourcePath(parts.segments)
        try Self.validate(path, name: string)
    }

    /// nil when the words of a name are not where they belong.
    private static func parts(
        of bytes: UnsafeBufferPointer<UInt8>
    ) -> (project: String, database: String, segments: [String])? {
        var segments = NameSegments(bytes)
        guard segments.skip("projects"), let project = segments.next(), !project.isEmpty,
            segments.skip("databases"), let database = segments.next(), !database.isEmpty, segments.skip("documents")
        else { return nil }
        var path: [String] = []
        path.reserveCapacity(4)
        while let segment = segments.next() { path.append(segment) }
        return (project, database, path)
    }

    /// What is wrong with a name without `parts`.
    private static func malformed(_ string: String) -> Status {
        let segments = ResourcePath.split(string)
        var offset = 0
        for (index, head) in ["projects", nil, "databases", nil, "documents"].enumerated() {
            guard index < segments.count else {
                return .invalidArgument(
                    "Document name \"\(string)\" lacks \"\(head ?? "/")\" at index \(max(0, offset - 1)).")
            }
            if let head, segments[index] != head {
                return .invalidArgument("Document name \"\(string)\" lacks \"\(head)\" at index \(offset).")
            }
            if head == nil, segments[index].isEmpty {
                return .invalidArgument(
                    "Document name \"\(string)\" contains an empty resource id at index \(offset).")
            }
            offset += segments[index].utf8.count + 1
        }
        return .invalidArgument("Document name \"\(string)\" is malformed.")
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

/// Takes a name apart at its slashes, from the start.
private struct NameSegments {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Beyond the end when there are no more.
    private var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private mutating func nextBytes() -> UnsafeBufferPointer<UInt8>? {
        guard position <= bytes.count else { return nil }
        let rest = bytes[position...]
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? bytes.count
        defer { position = end + 1 }
        return UnsafeBufferPointer(rebasing: rest[..<end])
    }

    mutating func next() -> String? { nextBytes().map { String(decoding: $0, as: UTF8.self) } }

    /// - Returns: false when the next segment is not this word.
    mutating func skip(_ word: StaticString) -> Bool {
        guard let segment = nextBytes() else { return false }
        return segment.elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}
