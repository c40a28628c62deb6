import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// `--require-indexes`: which queries the service would refuse, and what it says.
@Suite struct RequiredIndexesTests {
    private static let database = DatabaseName(project: "demo-fs-query-index")

    private static func missing(
        _ catalog: IndexCatalog, _ scope: Query.Scope, _ filter: Filter?, _ orders: [Query.Order] = [],
        sum: String? = nil, findNearest: Query.FindNearest? = nil
    ) throws(Status) -> MissingIndex? {
        let query = Query(
            parent: ResourceName(database: database, path: ResourcePath()), scope: scope, filter: filter,
            orders: orders,
            findNearest: findNearest)
        let aggregations = sum.map { [Aggregation(alias: "s", operator: .sum(path($0)))] } ?? []
        return RequiredIndexes(
            query: try AggregationExecution.normalize(query, aggregations), catalog: catalog
        ).missing
    }

    private static func path(_ string: String) -> FieldPath {
        FieldPath(segments: string.split(separator: ".").map(String.init))
    }

    private static func index(
        _ collectionID: String, _ fields: [(String, IndexField.Kind)], _ scope: IndexDefinition.Scope = .collection,
        nameDescending: Bool? = nil, state: IndexDefinition.State = .ready
    ) -> IndexDefinition {
        IndexDefinition(
            id: 0, collectionID: collectionID, scope: scope,
            fields: fields.map { IndexField(path: path($0.0), kind: $0.1) },
            nameDescending: nameDescending ?? (fields.last?.1 == .descending), state: state)
    }

    /// A catalog as a database has it when all builds are over.
    private static func catalog(_ definitions: [IndexDefinition], _ overrides: [FieldOverride]) -> IndexCatalog {
        let implied = IndexCatalog.impliedDefinitions(overrides).map { definition in
            var definition = definition
            definition.state = .ready
            return definition
        }
        return IndexCatalog(definitions: definitions + implied, overrides: overrides)
    }

    private static func asc(_ name: String) -> Query.Order { .init(field: path(name), descending: false) }
    private static func desc(_ name: String) -> Query.Order { .init(field: path(name), descending: true) }
    private static func equal(_ path: String) -> Filter { .field(FieldPath(path), .equal, .integer(1)) }
    private static func greater(_ path: String) -> Filter { .field(FieldPath(path), .greaterThan, .integer(1)) }
    private static func contains(_ path: String) -> Filter { .field(FieldPath(path), .arrayContains, .integer(1)) }
    private static let nameAfter = Filter.field(
        .documentName, .greaterThan, .reference("\(database.string)/documents/qx/x1"))

    // MARK: What the service answered

    private static let recordedIndexes = catalog(
        [
            index("ord", [], nameDescending: true), index("qx", [("a", .ascending), ("b", .ascending)]),
            index("qx", [("a", .ascending), ("c", .ascending)]), index("qx", [("b", .ascending), ("c", .ascending)]),
            index("qx", [("tags", .contains), ("b", .ascending)]),
            index("qcg", [("a", .ascending), ("b", .ascending)], .collectionGroup),
        ],
        [
            FieldOverride(
                collectionID: "items", path: FieldPath("n"), indexes: [.init(scope: .collectionGroup, kind: .ascending)]
            ),
            FieldOverride(collectionID: "pk", path: nil, indexes: []),
            FieldOverride(collectionID: "qx", path: FieldPath("nx"), indexes: []),
        ])

    private struct Recorded {
        var scope: Query.Scope = .collection("qx")
        var filter: Filter?
        var orders: [Query.Order] = []
        var sum: String?
        /// The end of the link of the refusal; nil for an answer.
        var refusal: String?
    }

    /// Facts of `conformance/fs-query-index-production.json` of github.com/t-k/fireemu: what the service answered in
    /// September 2026, with the indexes above.
    private static let recorded: [(String, Recorded)] = [
        ("one equality", Recorded(filter: equal("a"))),
        ("a range and its order", Recorded(filter: greater("c"), orders: [desc("c")])),
        ("a descending order", Recorded(orders: [desc("c")])),
        ("a membership", Recorded(filter: contains("tags"))),
        ("two equalities", Recorded(filter: .and([equal("a"), equal("b")]))),
        ("three equalities", Recorded(filter: .and([equal("a"), equal("b"), equal("s")]))),
        ("an equality and a membership", Recorded(filter: .and([equal("a"), contains("tags")]))),
        ("equalities merged before an order", Recorded(filter: .and([equal("a"), equal("b")]), orders: [asc("c")])),
        ("an equality, names descending", Recorded(filter: equal("a"), orders: [desc("__name__")])),
        ("an equality, names ascending", Recorded(filter: equal("a"), orders: [asc("__name__")])),
        ("names descending", Recorded(orders: [desc("__name__")], refusal: "L18QARoMCghfX25hbWVfXxAC")),
        ("names descending, with their index", Recorded(scope: .collection("ord"), orders: [desc("__name__")])),
        (
            "a range of names, descending",
            Recorded(filter: nameAfter, orders: [desc("__name__")], refusal: "L18QARoMCghfX25hbWVfXxAC")
        ),
        (
            "in and an equality",
            Recorded(
                filter: .and([.field(FieldPath("a"), .in, .array([.integer(0), .integer(1)])), equal("b")]))
        ),
        ("one of two fields", Recorded(filter: .or([equal("a"), greater("c")]))),
        ("an equality and an order", Recorded(filter: equal("a"), orders: [asc("b")])),
        (
            "an equality and the opposite order",
            Recorded(filter: equal("a"), orders: [desc("b")], refusal: "L18QARoFCgFhEAEaBQoBYhACGgwKCF9fbmFtZV9fEAI")
        ),
        ("two ranges", Recorded(filter: .and([greater("a"), greater("b")]))),
        (
            "two ranges in the other order",
            Recorded(
                filter: .and([greater("a"), greater("b")]), orders: [asc("b")],
                refusal: "L18QARoFCgFiEAEaBQoBYRABGgwKCF9fbmFtZV9fEAE")
        ),
        ("two orders", Recorded(orders: [asc("a"), asc("b")])),
        (
            "two orders without an index",
            Recorded(orders: [asc("b"), asc("a")], refusal: "L18QARoFCgFiEAEaBQoBYRABGgwKCF9fbmFtZV9fEAE")
        ),
        ("a membership and an order", Recorded(filter: contains("tags"), orders: [asc("b")])),
        (
            "a membership and an order without an index",
            Recorded(
                filter: contains("tags"), orders: [asc("c")], refusal: "L18QARoICgR0YWdzGAEaBQoBYxABGgwKCF9fbmFtZV9fEAE"
            )
        ),
        (
            "one equality that no merge has",
            Recorded(
                filter: .and([equal("a"), equal("d")]), orders: [asc("c")],
                refusal: "L18QARoFCgFhEAEaBQoBZBABGgUKAWMQARoMCghfX25hbWVfXxAB")
        ),
        (
            "an equality and a range without an index",
            Recorded(
                filter: .and([equal("s"), greater("c")]), refusal: "L18QARoFCgFzEAEaBQoBYxABGgwKCF9fbmFtZV9fEAE")
        ),
        ("an equality and a range of names", Recorded(filter: .and([equal("a"), nameAfter]))),
        (
            "a range, names the other way",
            Recorded(
                filter: greater("c"), orders: [asc("c"), desc("__name__")],
                refusal: "L18QARoFCgFjEAEaDAoIX19uYW1lX18QAg")
        ),
        ("alternatives with an index each", Recorded(filter: .or([.and([equal("a"), greater("c")]), equal("b")]))),
        ("a sum", Recorded(filter: equal("a"), sum: "b")),
        (
            "a sum without an index",
            Recorded(filter: equal("a"), sum: "d", refusal: "L18QARoFCgFhEAEaBQoBZBABGgwKCF9fbmFtZV9fEAE")
        ),
        ("equality on an exempted field", Recorded(filter: equal("nx"), refusal: "bngQARoGCgJueBAB")),
        ("order by an exempted field", Recorded(orders: [asc("nx")], refusal: "bngQARoGCgJueBAB")),
        (
            "a collection without automatic indexes",
            Recorded(scope: .collection("pk"), filter: equal("a"), refusal: "YRABGgUKAWEQAQ")
        ),
        ("a group", Recorded(scope: .collectionGroup("qg"))),
        ("equality in a group", Recorded(scope: .collectionGroup("qg"), filter: equal("n"), refusal: "bhACGgUKAW4QAQ")),
        ("order of a group", Recorded(scope: .collectionGroup("qg"), orders: [asc("n")], refusal: "bhACGgUKAW4QAQ")),
        (
            "descending order of a group",
            Recorded(scope: .collectionGroup("qg"), orders: [desc("n")], refusal: "bhACGgUKAW4QAg")
        ),
        (
            "membership in a group",
            Recorded(scope: .collectionGroup("qg"), filter: contains("tags"), refusal: "dGFncxACGggKBHRhZ3MYAQ")
        ),
        ("a group's composite index", Recorded(scope: .collectionGroup("qcg"), filter: equal("a"), orders: [asc("b")])),
        (
            "a group's composite index for a collection",
            Recorded(scope: .collection("qcg"), filter: equal("a"), orders: [asc("b")])
        ),
        (
            "a collection's composite index for a group",
            Recorded(
                scope: .collectionGroup("qx"), filter: equal("a"), orders: [asc("b")],
                refusal: "L18QAhoFCgFhEAEaBQoBYhABGgwKCF9fbmFtZV9fEAE")
        ),
        ("a group's index for the group", Recorded(scope: .collectionGroup("items"), filter: equal("n"))),
        (
            "a group's index for a collection",
            Recorded(scope: .collection("items"), filter: equal("n"), refusal: "bhABGgUKAW4QAQ")
        ),
        ("a group's index for its order", Recorded(scope: .collectionGroup("items"), orders: [asc("n")])),
    ]

    @Test func decidesAsTheServiceAnswered() throws {
        for (name, row) in Self.recorded {
            let missing = try Self.missing(
                Self.recordedIndexes, row.scope, row.filter, row.orders, sum: row.sum)
            let message = missing?.status(database: Self.database).message
            guard let refusal = row.refusal else {
                #expect(message == nil, "\(name)")
                continue
            }
            let link = message?.split(separator: " ").first {
                $0.hasPrefix("https://console.firebase.google.com/v1/r/project/")
            }
            #expect(link?.hasSuffix(refusal) == true, "\(name): \(message ?? "served")")
        }
    }

    // MARK: Every operator, exemption, scope and shape

    private enum Condition: CaseIterable {
        case equal, `in`, isNull, isNaN, arrayContains, arrayContainsAny
        case lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual, notEqual, notIn, isNotNull, isNotNaN

        func filter(_ path: FieldPath) -> Filter {
            let list = Value.array([.integer(1), .integer(2)])
            return switch self {
            case .equal: .field(path, .equal, .integer(1))
            case .in: .field(path, .in, list)
            case .isNull: .unary(path, .isNull)
            case .isNaN: .unary(path, .isNaN)
            case .arrayContains: .field(path, .arrayContains, .integer(1))
            case .arrayContainsAny: .field(path, .arrayContainsAny, list)
            case .lessThan: .field(path, .lessThan, .integer(1))
            case .lessThanOrEqual: .field(path, .lessThanOrEqual, .integer(1))
            case .greaterThan: .field(path, .greaterThan, .integer(1))
            case .greaterThanOrEqual: .field(path, .greaterThanOrEqual, .integer(1))
            case .notEqual: .field(path, .notEqual, .integer(1))
            case .notIn: .field(path, .notIn, list)
            case .isNotNull: .unary(path, .isNotNull)
            case .isNotNaN: .unary(path, .isNotNaN)
            }
        }

        var isEquality: Bool { [.equal, .in, .isNull, .isNaN].contains(self) }
        var isMembership: Bool { [.arrayContains, .arrayContainsAny].contains(self) }
    }

    /// A setting of the filtered field, and the kinds of its indexes in each scope.
    private struct Exemption {
        var name: String
        var path = "a"
        /// Overrides of the collection id, besides that of the other field.
        var overrides: [(path: String?, indexes: [FieldOverride.Index])]
        var inCollections: Set<IndexField.Kind>
        var inGroups: Set<IndexField.Kind> = []
    }

    private static let all: Set<IndexField.Kind> = [.ascending, .descending, .contains]

    private static func kept(_ collection: Set<IndexField.Kind>, group: Set<IndexField.Kind> = []) -> [FieldOverride
        .Index]
    {
        collection.map { .init(scope: .collection, kind: $0) } + group.map { .init(scope: .collectionGroup, kind: $0) }
    }

    private static let exemptions: [Exemption] = [
        Exemption(name: "none", overrides: [], inCollections: all),
        Exemption(name: "everything off", overrides: [("a", [])], inCollections: []),
        Exemption(name: "ascending", overrides: [("a", kept([.ascending]))], inCollections: [.ascending]),
        Exemption(name: "descending", overrides: [("a", kept([.descending]))], inCollections: [.descending]),
        Exemption(name: "contains", overrides: [("a", kept([.contains]))], inCollections: [.contains]),
        Exemption(
            name: "ascending and contains", overrides: [("a", kept([.ascending, .contains]))],
            inCollections: [.ascending, .contains]),
        Exemption(
            name: "groups alone", overrides: [("a", kept([], group: all))], inCollections: [], inGroups: all),
        Exemption(
            name: "everything, and ascending in groups", overrides: [("a", kept(all, group: [.ascending]))],
            inCollections: all, inGroups: [.ascending]),
        Exemption(
            name: "contains in groups", overrides: [("a", kept(all, group: [.contains]))], inCollections: all,
            inGroups: [.contains]),
        Exemption(name: "the map above is off", path: "m.a", overrides: [("m", [])], inCollections: []),
        Exemption(
            name: "the map above is off, the field ascending", path: "m.a",
            overrides: [("m", []), ("m.a", kept([.ascending]))], inCollections: [.ascending]),
        Exemption(name: "all fields are off", overrides: [(nil, [])], inCollections: []),
        Exemption(
            name: "all fields are off, the field is not", overrides: [(nil, []), ("a", kept(all))], inCollections: all),
        Exemption(name: "another field is off", overrides: [("z", [])], inCollections: all),
    ]

    private enum Shape: CaseIterable {
        case alone, andEquality, orEquality, orderOfOther, orderDescending, namesDescending, sumOfOther, sumOfItself
    }

    /// The indexes of the composite variants are (a, b), (b, a) and (a CONTAINS, b), all ascending.
    private static func isServed(
        _ condition: Condition, _ shape: Shape, _ kinds: Set<IndexField.Kind>, hasComposites: Bool
    ) -> Bool {
        let isOrdered = !condition.isEquality && !condition.isMembership
        // Without an order both directions have an equality's documents.
        let alone =
            condition.isEquality
            ? kinds.contains(.ascending) || kinds.contains(.descending)
            : kinds.contains(condition.isMembership ? .contains : .ascending)
        switch shape {
        case .alone: return alone
        // Merged, or by a composite index; with an inequality, only by one.
        case .andEquality: return hasComposites || (!isOrdered && alone)
        // An inequality orders the other alternative, too.
        case .orEquality: return alone && (!isOrdered || hasComposites)
        case .orderOfOther: return hasComposites
        // An equality leaves names descending. No index has a membership and the order of the same field.
        case .orderDescending: return !condition.isMembership && kinds.contains(.descending)
        case .namesDescending: return condition.isEquality && kinds.contains(.descending)
        case .sumOfOther: return hasComposites
        // The sum of a field that an equality fixes needs nothing else.
        case .sumOfItself: return !condition.isMembership && alone
        }
    }

    private static func missing(
        _ condition: Condition, _ shape: Shape, _ path: String, _ scope: Query.Scope, _ catalog: IndexCatalog
    ) throws(Status) -> MissingIndex? {
        let filter = condition.filter(Self.path(path))
        switch shape {
        case .alone: return try missing(catalog, scope, filter)
        case .andEquality: return try missing(catalog, scope, .and([filter, equal("b")]))
        case .orEquality: return try missing(catalog, scope, .or([filter, equal("b")]))
        case .orderOfOther:
            // The order of an inequality comes last.
            return try missing(catalog, scope, filter, [asc("b")])
        case .orderDescending: return try missing(catalog, scope, filter, [desc(path)])
        case .namesDescending:
            let orders = condition.isEquality || condition.isMembership ? [] : [asc(path)]
            return try missing(catalog, scope, filter, orders + [desc("__name__")])
        case .sumOfOther: return try missing(catalog, scope, filter, sum: "b")
        case .sumOfItself: return try missing(catalog, scope, filter, sum: path)
        }
    }

    @Test(arguments: [nil, IndexDefinition.Scope.collection, .collectionGroup])
    func everyOperatorExemptionScopeAndShape(_ composites: IndexDefinition.Scope?) throws {
        var served = 0
        var refused = 0
        for exemption in Self.exemptions {
            let path = exemption.path
            let definitions = composites.map { scope in
                [
                    Self.index("c", [(path, .ascending), ("b", .ascending)], scope),
                    Self.index("c", [("b", .ascending), (path, .ascending)], scope),
                    Self.index("c", [(path, .contains), ("b", .ascending)], scope),
                ]
            }
            // The other field has all indexes in both scopes.
            let settings = exemption.overrides + [("b", Self.kept(Self.all, group: Self.all))]
            let overrides = settings.map { override in
                FieldOverride(
                    collectionID: "c", path: override.path.map(Self.path),
                    indexes: override.indexes)
            }
            let catalog = Self.catalog(definitions ?? [], overrides)
            for isGroup in [false, true] {
                let scope: Query.Scope = isGroup ? .collectionGroup("c") : .collection("c")
                let hasComposites = composites == .collectionGroup || (composites == .collection && !isGroup)
                for condition in Condition.allCases {
                    // The service refuses NOT_IN beside OR.
                    for shape in Shape.allCases where condition != .notIn || shape != .orEquality {
                        let expected = Self.isServed(
                            condition, shape, isGroup ? exemption.inGroups : exemption.inCollections,
                            hasComposites: hasComposites)
                        let missing = try Self.missing(condition, shape, path, scope, catalog)
                        #expect(
                            (missing == nil) == expected,
                            "\(condition), \(shape), \(exemption.name), \(isGroup ? "group" : "collection")")
                        if expected { served += 1 } else { refused += 1 }
                    }
                }
            }
        }
        #expect(served > 300 && refused > 300, "\(served) served, \(refused) refused")
    }

    // MARK: Messages

    @Test func theIndexOfAFieldIsNamedWithItsOverride() throws {
        let catalog = Self.catalog(
            [], [FieldOverride(collectionID: "qx", path: FieldPath("nx"), indexes: Self.kept([.contains]))])
        let missing = try #require(try Self.missing(catalog, .collection("qx"), Self.equal("nx")))
        let status = missing.status(database: Self.database)
        #expect(status.code == .failedPrecondition)
        let payload =
            "Ck5wcm9qZWN0cy9kZW1vLWZzLXF1ZXJ5LWluZGV4L2RhdGFiYXNlcy8oZGVmYXVsdCkvY29sbGVjdGlvbkdyb3Vwcy9xeC9maWVsZHMvbngQARoGCgJueBAB"
        let parts = [
            "The query requires a COLLECTION_ASC index for collection qx and field nx. You can create it here: ",
            "https://console.firebase.google.com/v1/r/project/demo-fs-query-index/firestore/indexes?create_exemption=",
            payload, #" or add to "fieldOverrides" of firestore.indexes.json: "#,
            #"{"collectionGroup": "qx", "fieldPath": "nx", "indexes": "#,
            #"[{"queryScope": "COLLECTION", "arrayConfig": "CONTAINS"}, {"queryScope": "COLLECTION", "order": "ASCENDING"}]}"#,
        ]
        #expect(status.message == parts.joined())
    }

    @Test func inequalitiesOfSeveralFieldsPointToTheGuide() throws {
        let filter = Filter.and([Self.greater("a"), Self.greater("b")])
        let message = try Self.missing(IndexCatalog(), .collection("c"), filter)?.status(database: Self.database)
            .message
        #expect(message?.hasSuffix("/firestore/docs/query-data/multiple-range-fields.") == true, "\(message ?? "")")
    }

    @Test func anIndexThatIsBuiltIsNamedAsSuch() throws {
        let building = Self.index("c", [("a", .ascending), ("b", .ascending)], state: .creating)
        let message = try Self.missing(
            IndexCatalog(definitions: [building]), .collection("c"), Self.equal("a"), [Self.asc("b")]
        )?.status(database: Self.database).message
        #expect(
            message?.hasPrefix(
                "The query requires an index. That index is currently building and cannot be used yet. See its status here: https://"
            )
                == true, "\(message ?? "")")
    }

    @Test func aSearchForNeighboursNeedsAVectorIndex() throws {
        let search = Query.FindNearest(
            field: FieldPath("emb"), vector: [1, 2, 3], measure: .euclidean, limit: 2, resultField: nil, threshold: nil)
        func message(_ definitions: [IndexDefinition]) throws -> String? {
            try Self.missing(
                IndexCatalog(definitions: definitions), .collection("qvec"), Self.equal("n"), findNearest: search
            )?.status(database: Self.database).message
        }
        let refusal = try message([Self.index("qvec", [("emb", .vector(dimension: 3))])])
        #expect(
            refusal?.hasPrefix(
                "Missing vector index configuration. Please create the required index with the following gcloud command: "
                    + "gcloud firestore indexes composite create --project=demo-fs-query-index --collection-group=qvec "
                    + "--query-scope=COLLECTION --field-config=order=ASCENDING,field-path=n "
                    + #"--field-config=vector-config='{"dimension":"3","flat": "{}"}',field-path=emb"#) == true,
            "\(refusal ?? "served")")
        let other = Self.index("qvec", [("n", .ascending), ("emb", .vector(dimension: 2))])
        #expect(try message([other]) != nil)
        #expect(try message([Self.index("qvec", [("n", .descending), ("emb", .vector(dimension: 3))])]) == nil)
    }

    /// Results do not depend on the option: it refuses, or it changes nothing.
    @Test func anIndexOfNamesHasNoEntries() throws {
        let (database, count) = try filled()
        try database.setCatalog([Self.index("c", [], nameDescending: true)])
        let view = try database.view()
        #expect(try view.snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: .max) == count)
        let query = Query(
            parent: ResourceName(database: testDatabaseName, path: ResourcePath()), scope: .collection("c"),
            orders: [Self.desc("__name__")])
        let execution = try QueryExecution(try NormalizedQuery(query), view: view, requireIndexes: true)
        var values: [Value?] = []
        while let result = try execution.next() { values.append(try FieldsCodec.decode(result.document.fields)["a"]) }
        #expect(values == [.integer(2), .integer(1), .integer(0)])
        #expect(try IntegrityCheck.run(database).isSound)
    }

    private func filled() throws -> (Database, Int) {
        let database = try Database(name: testDatabaseName, store: FaultyStore(), clock: StoppedClock())
        for number in 0..<3 { try database.commit([.set("c/\(number)", map(("a", .integer(Int64(number)))))]) }
        let view = try database.view()
        return (database, try view.snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: .max))
    }
}
