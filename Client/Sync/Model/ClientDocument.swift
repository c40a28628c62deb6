import HearthModel

/// A document as the client knows it: the server's state, the effect of local writes, or unknown.
///
/// Two documents are equal when key, kind, version and state are equal and the fields are strictly equal: an integer
/// never equals a double.
package struct ClientDocument: Sendable {
    package enum Kind: UInt8, Sendable {
        /// No information is available.
        case invalid
        /// Exists, with `fields`.
        case found
        /// Known not to exist at `version`.
        case missing
        /// Exists at `version`, with unknown contents: an acknowledged patch could not be applied.
        case unknown
    }

    package enum State: UInt8, Sendable {
        case synced
        case hasLocalMutations
        case hasCommittedMutations
    }

    /// The path below the database's documents.
    package let key: ResourcePath
    package var kind: Kind
    /// The server's update time; `Timestamp.none` for a document that only local writes made.
    package var version: Timestamp
    package var readTime: Timestamp
    package var createTime: Timestamp
    package var fields: MapValue
    package var state: State

    package init(
        key: ResourcePath, kind: Kind = .invalid, version: Timestamp = .none, readTime: Timestamp = .none,
        createTime: Timestamp = .none, fields: MapValue = MapValue(), state: State = .synced
    ) {
        self.key = key
        self.kind = kind
        self.version = version
        self.readTime = readTime
        self.createTime = createTime
        self.fields = fields
        self.state = state
    }

    package var isFound: Bool { kind == .found }
    package var isValid: Bool { kind != .invalid }
    package var hasPendingWrites: Bool { state != .synced }
    package var hasLocalMutations: Bool { state == .hasLocalMutations }
    package var hasCommittedMutations: Bool { state == .hasCommittedMutations }
}

extension ClientDocument: Equatable {
    package static func == (lhs: ClientDocument, rhs: ClientDocument) -> Bool {
        lhs.kind == rhs.kind && lhs.version == rhs.version && lhs.state == rhs.state && lhs.key == rhs.key
            && StrictEquality.equal(lhs.fields, rhs.fields)
    }
}

extension ClientDocument {
    /// Whether users see the same document. An acknowledged document is what the server sends next: only the engine
    /// distinguishes them.
    package func looksLike(_ other: ClientDocument) -> Bool {
        kind == other.kind && version == other.version && hasLocalMutations == other.hasLocalMutations
            && key == other.key && StrictEquality.equal(fields, other.fields)
    }
}

extension Sequence<ClientDocument> {
    package var byKey: [ResourcePath: ClientDocument] {
        var documents: [ResourcePath: ClientDocument] = [:]
        documents.reserveCapacity(underestimatedCount)
        for document in self { documents[document.key] = document }
        return documents
    }
}

extension Timestamp {
    /// The version of documents that no server has sent: 1970.
    package static let none = Timestamp(microseconds: 0)
}
