import HearthModel
import HearthTestSupport
import HearthWire

@testable import HearthEngine
@testable import HearthDocuments

/// A random database with its naive twin: few ids, few field names and a small palette of values, so that filters match
/// documents.
struct RandomDatabase {
    var random: SeededGenerator
    let clock = StoppedClock()
    let store: any Store
    let database: Database
    /// Values of documents and filters.
    let palette: [Value]
    let scalars: [Value]
    /// Those of them that filters may use: no long strings.
    let operands: [Value]
    let scalarOperands: [Value]
    let paths: [ResourcePath]
    private(set) var state: NaiveState = [:]
    /// The state after each version, oldest first.
    private(set) var history: [(version: Int64, state: NaiveState)] = []

    static let collections = ["c", "d", "e\u{301}", "\u{E9}"]
    static let ids = ["1", "2", "3", "a", "b", "a\u{0}", "a-", "__id7__", "__id-3__", "__id10__", "é", "zz"]
    static let longID = String(repeating: "n", count: 1400)
    static let fields = ["a", "b", "c", "t", "m", "`m`.x", "m.`x.y`", "m.y", "é", "`x.y`", "m.y.x"].map(Self.path)

    private static func path(_ string: String) -> FieldPath {
        do { return try FieldPath(parsing: string) } catch {
            // Non-ASCII letters need quotes.
            return FieldPath(string)
        }
    }

    init(_ random: SeededGenerator, store: any Store = MemoryStore()) throws {
        var random = random
        self.store = store
        database = try Database(name: testDatabaseName, store: store, clock: clock)
        var maker = ValueMaker(random.fork())
        scalars = (0..<5).map { _ in maker.scalar() }
        palette = scalars + (0..<7).map { _ in maker.value(depth: 2) }
        operands = palette.filter(Self.isOperand)
        scalarOperands = scalars.filter(Self.isOperand)
        paths = Self.somePaths(&random)
        self.random = random
        history.append((clock.now().microseconds - 1000, [:]))
    }

    private static func isOperand(_ value: Value) -> Bool {
        let filter = Filter.field(FieldPath("a"), .equal, value)
        return statusOf { () throws(Status) in try QueryRules.check(filter) } == nil
    }

    /// Documents at several depths, many below documents that don't exist, many in collections of one id.
    private static func somePaths(_ random: inout SeededGenerator) -> [ResourcePath] {
        let count = 10 + random.below(50)
        var paths: Set<ResourcePath> = []
        while paths.count < count {
            var segments: [String] = []
            for _ in 0..<random.pick([1, 1, 1, 1, 2, 2, 3]) {
                segments.append(random.chance(60) ? "c" : random.pick(collections))
                segments.append(random.chance(3) ? longID : random.pick(random.chance(70) ? ids[..<5] : ids[...]))
            }
            paths.insert(ResourcePath(segments))
        }
        // By name, so that a seed always gives the same order.
        return paths.sorted { ValueOrder.compareNames($0.string, $1.string) < 0 }
    }

    // MARK: Documents

    mutating func randomFields() -> MapValue {
        var fields = MapValue()
        for path in Self.fields where random.chance(path.segments.count == 1 ? 75 : 30) {
            fields.set(path, random.pick(palette))
        }
        if random.chance(40) {
            let count = random.chance(15) ? 40 : random.below(4)
            // Elements that are arrays or vectors can't be.
            fields.set("t", .array((0..<count).map { _ in random.pick(scalars) }))
        }
        return fields
    }

    /// Commits changes to several documents, and notes the state.
    mutating func commit(documents count: Int) throws {
        var changes: [(path: ResourcePath, fields: MapValue?)] = []
        for _ in 0..<count {
            let path = random.pick(paths)
            if changes.contains(where: { $0.path == path }) { continue }
            if random.chance(12) {
                changes.append((path, nil))
            } else if let present = state[path], random.chance(40) {
                var fields = present.fields
                fields.set(random.pick(["a", "b", "c"]), random.pick(palette))
                changes.append((path, fields))
            } else {
                changes.append((path, randomFields()))
            }
        }
        try commit(changes)
    }

    mutating func commit(_ changes: [(path: ResourcePath, fields: MapValue?)]) throws {
        let writes = changes.map { path, fields in
            Write(
                document: ResourceName(database: testDatabaseName, path: path),
                operation: fields.map { .update(fields: $0, mask: nil) } ?? .delete)
        }
        let outcome = try database.commit(writes)
        state.apply(changes, version: outcome.commitTime.microseconds)
        history.append((outcome.commitTime.microseconds, state))
    }

    /// The state as of a time.
    func state(at time: Int64) -> NaiveState { history.last { $0.version <= time }?.state ?? [:] }

    // MARK: Indexes

    /// Definitions of which some serve the queries, by shape: some of the equalities, then the order.
    mutating func randomDefinitions(for queries: [Query]) -> [IndexDefinition] {
        var definitions: [IndexDefinition] = []
        for query in queries where random.chance(70) {
            let (collectionID, scope): (String, IndexDefinition.Scope)
            switch query.scope {
            case .collection(let id): (collectionID, scope) = (id, .collection)
            case .collectionGroup(let id): (collectionID, scope) = (id, .collectionGroup)
            default: continue
            }
            let normalized = NaiveQuery(query)
            var (equalities, memberships) = Self.points(query.filter)
            equalities.removeAll { _ in random.chance(20) }
            let reverse = random.chance(50)
            var heads: [[IndexField]] = [[]]
            if let membership = memberships.first, random.chance(70) {
                heads[0].append(IndexField(path: membership, kind: .contains))
            }
            // Now and then one definition for each equality, all with the same order, so that they can be joined.
            let isSplit = random.chance(60)
            for path in equalities {
                let field = IndexField(path: path, kind: random.chance(50) ? .ascending : .descending)
                if isSplit, !heads[0].isEmpty { heads.append([field]) } else { heads[heads.count - 1].append(field) }
            }
            for head in heads {
                var fields = head
                for order in normalized.orders where !order.field.isDocumentName && !equalities.contains(order.field) {
                    fields.append(
                        IndexField(path: order.field, kind: order.descending != reverse ? .descending : .ascending))
                }
                if fields.isEmpty { continue }
                definitions.append(
                    IndexDefinition(
                        id: 0, collectionID: collectionID, scope: scope, fields: fields,
                        nameDescending: (normalized.orders.last!.descending) != reverse))
            }
        }
        return definitions
    }

    /// The fields under equalities and array memberships, anywhere in a filter.
    private static func points(_ filter: Filter?) -> (equalities: [FieldPath], memberships: [FieldPath]) {
        var equalities: [FieldPath] = []
        var memberships: [FieldPath] = []
        func walk(_ filter: Filter) {
            switch filter {
            case .and(let filters), .or(let filters): filters.forEach(walk)
            case .unary(let path, let op): if op == .isNull || op == .isNaN { equalities.append(path) }
            case .field(let path, .equal, _), .field(let path, .in, _):
                if !path.isDocumentName, !equalities.contains(path) { equalities.append(path) }
            case .field(let path, .arrayContains, _), .field(let path, .arrayContainsAny, _): memberships.append(path)
            case .field: break
            }
        }
        if let filter { walk(filter) }
        return (equalities, memberships)
    }

    mutating func randomOverrides() -> [FieldOverride] {
        guard random.chance(50) else { return [] }
        return (0..<random.below(4)).map { _ in
            var indexes: [FieldOverride.Index] = []
            if random.chance(30) { indexes.append(.init(scope: .collection, kind: .ascending)) }
            if random.chance(20) { indexes.append(.init(scope: .collection, kind: .descending)) }
            if random.chance(30) { indexes.append(.init(scope: .collection, kind: .contains)) }
            if random.chance(40) { indexes.append(.init(scope: .collectionGroup, kind: .ascending)) }
            if random.chance(20) { indexes.append(.init(scope: .collectionGroup, kind: .descending)) }
            if random.chance(20) { indexes.append(.init(scope: .collectionGroup, kind: .contains)) }
            return FieldOverride(
                collectionID: random.chance(60) ? "c" : random.pick(Self.collections),
                path: random.chance(15) ? nil : random.pick(Self.fields), indexes: indexes)
        }
    }
}
