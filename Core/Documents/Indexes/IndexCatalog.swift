import HearthModel

/// All index definitions of a database. An immutable value: a change makes a new catalog.
package struct IndexCatalog: Sendable, Equatable {
    /// The overrides of a collection have changed, and not all of its documents have the matching entries yet.
    ///
    /// A document may have the entries of any of the earlier overrides, or those of the present ones. Meanwhile a query
    /// uses only indexes that exist under all of them, and a write deletes entries that may exist under any.
    struct Change: Sendable, Equatable {
        var collectionID: String
        /// The overrides of the collection before each of the changes that are under way, oldest first.
        var earlier: [[FieldOverride]]
    }

    /// Which of a document's entries are meant while overrides change.
    enum Extent {
        /// The entries of the present overrides, which every write makes.
        case present
        /// The entries that it may have.
        case possible
        /// The entries that it certainly has.
        case certain
    }

    package private(set) var definitions: [IndexDefinition] = []
    package private(set) var overrides: [FieldOverride] = []
    private(set) var changes: [Change] = []
    /// Whether entries are being brought to a change of overrides.
    package var isChanging: Bool { !changes.isEmpty }
    /// Removed definitions that still have entries.
    private(set) var removed: [IndexDefinition] = []
    /// The id of the next new definition; greater than all earlier ids.
    private(set) var nextID: UInt32 = 1
    /// The policies of expiry, each with its index.
    private(set) var expiryPolicies: [(index: IndexDefinition, policy: FieldOverride.TimeToLive)] = []
    private var byCollection: [[UInt8]: CollectionIndexes] = [:]

    package init(definitions: [IndexDefinition] = [], overrides: [FieldOverride] = []) {
        self.init(definitions: definitions, overrides: overrides, changes: [], removed: [])
    }

    init(
        definitions: [IndexDefinition], overrides: [FieldOverride], changes: [Change], removed: [IndexDefinition],
        nextID: UInt32 = 1
    ) {
        self.nextID = nextID
        self.definitions = definitions
        self.overrides = overrides
        self.changes = changes
        self.removed = removed
        byCollection = CollectionIndexes.all(definitions, overrides, changes)
        for index in definitions where index.scope == .expiry {
            if let policy = expiryPolicy(index) { expiryPolicies.append((index, policy)) }
        }
    }

    package static func == (lhs: IndexCatalog, rhs: IndexCatalog) -> Bool {
        lhs.definitions == rhs.definitions && lhs.overrides == rhs.overrides && lhs.changes == rhs.changes
            && lhs.removed == rhs.removed
    }

    /// The indexes of the collections with an id.
    func indexes(of collectionID: String) -> CollectionIndexes {
        byCollection.isEmpty ? CollectionIndexes() : byCollection[Array(collectionID.utf8)] ?? CollectionIndexes()
    }

    func overrides(for collectionID: String) -> [FieldOverride] { indexes(of: collectionID).overrides }

    /// The change of overrides that is under way in a collection.
    func change(of collectionID: String) -> Change? {
        changes.isEmpty ? nil : changes.first { UTF8Order.equal($0.collectionID, collectionID) }
    }

    /// Definitions whose entries are maintained for documents of a collection id.
    func definitions(for collectionID: String) -> [IndexDefinition] { indexes(of: collectionID).definitions }

    /// The ids of the collections whose automatic indexes differ between two catalogs.
    func collectionsWithOtherOverrides(_ other: IndexCatalog) -> [String] {
        Set(byCollection.keys).union(other.byCollection.keys).filter { id in
            Self.automatic(byCollection[id]?.overrides) != Self.automatic(other.byCollection[id]?.overrides)
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// What overrides say of automatic indexes: policies of expiry have an index of their own.
    private static func automatic(_ overrides: [FieldOverride]?) -> Set<FieldOverride> {
        Set(
            (overrides ?? []).map { override in
                FieldOverride(collectionID: override.collectionID, path: override.path, indexes: override.indexes)
            })
    }

    /// The override that governs a field: its own, that of the nearest path above it, or that of the whole collection.
    func override(for path: FieldPath, in collectionID: String) -> FieldOverride? {
        CollectionIndexes.override(for: path.segments, among: overrides(for: collectionID))
    }

    /// Whether the automatic order index of a field certainly exists, so that queries may use it.
    func hasOrderIndex(_ path: FieldPath, in collectionID: String) -> Bool {
        indexes(of: collectionID).hasOrderIndex(path.segments, .certain)
    }

    func hasContainsIndex(_ path: FieldPath, in collectionID: String) -> Bool {
        indexes(of: collectionID).hasContainsIndex(path.segments, .certain)
    }

    /// The definitions that were requested as such, without those that overrides imply.
    package var ownDefinitions: [IndexDefinition] {
        let brought = Set(Self.impliedDefinitions(overrides).map(IndexIdentity.init))
        return definitions.filter { !brought.contains(IndexIdentity($0)) }
    }

    /// Overrides that ask for an index of collection group scope, or for expiry, become definitions of one field.
    package static func impliedDefinitions(_ overrides: [FieldOverride]) -> [IndexDefinition] {
        overrides.flatMap { override -> [IndexDefinition] in
            guard let path = override.path else { return [] }
            var definitions = override.indexes.filter { $0.scope == .collectionGroup }.map { index in
                IndexDefinition(
                    id: 0, collectionID: override.collectionID, scope: .collectionGroup,
                    fields: [IndexField(path: path, kind: index.kind)], nameDescending: index.kind == .descending)
            }
            if override.timeToLive != nil {
                definitions.append(
                    IndexDefinition(
                        id: 0, collectionID: override.collectionID, scope: .expiry,
                        fields: [IndexField(path: path, kind: .ascending)], nameDescending: false))
            }
            return definitions
        }
    }

    /// The policy of an index of expiry times that is in force.
    func expiryPolicy(_ index: IndexDefinition) -> FieldOverride.TimeToLive? {
        overrides(for: index.collectionID).first { $0.path == index.fields.first?.path }?.timeToLive
    }

    /// The settings of a field without an override of its own: those of the nearest path above it, or of the
    /// collection.
    package func inheritedOverride(for path: FieldPath?, in collectionID: String) -> FieldOverride? {
        guard let path else { return nil }
        let above = overrides(for: collectionID).filter { candidate in
            guard let other = candidate.path else { return true }
            return other != path && other.isPrefix(of: path)
        }
        return above.max { ($0.path?.segments.count ?? 0) < ($1.path?.segments.count ?? 0) }
    }
}

/// The identity of an index, independent of ids and states.
struct IndexIdentity: Hashable {
    // By bytes: to Swift, two spellings of "é" are one string.
    private let collectionID: [UInt8]
    private let scope: IndexDefinition.Scope
    private let fields: [IndexField]
    private let nameDescending: Bool

    init(_ definition: IndexDefinition) {
        collectionID = Array(definition.collectionID.utf8)
        scope = definition.scope
        fields = definition.fields
        nameDescending = definition.nameDescending
    }
}
