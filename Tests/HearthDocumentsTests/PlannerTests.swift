import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// Queries of every shape against a walk over every document.
@Suite struct PlannerTests {
    static let databases = 16 * TestRun.effort
    static let queriesPerDatabase = 60

    @Test func answersLikeALookAtEveryDocument() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var tally = QueryTally()
        for _ in 0..<Self.databases where tally.failures < 3 {
            try run(seed: TestRun.givenSeed ?? random.next(), &tally)
            if TestRun.givenSeed != nil { break }
        }
        tally.expectMostlyAccepted()
        if TestRun.givenSeed == nil { tally.expectAllTraits() }
    }

    /// Seeds of databases that found a defect once, besides the random ones.
    static let telling: [UInt64] = [4_217_624_836_696_779_503]

    @Test(arguments: telling) func answersFormerDefectsCorrectly(_ seed: UInt64) throws {
        var tally = QueryTally()
        try run(seed: seed, &tally)
    }

    /// One database, its queries, and its queries at past versions.
    private func run(seed: UInt64, _ tally: inout QueryTally) throws {
        var twin = try RandomDatabase(SeededGenerator(seed: seed))
        defer { twin.database.close() }
        for _ in 0..<(1 + twin.random.below(6)) { try twin.commit(documents: 1 + twin.random.below(30)) }
        let queries = (0..<Self.queriesPerDatabase).map { _ in twin.randomQuery() }
        if twin.random.chance(70) {
            try twin.database.setCatalog(twin.randomDefinitions(for: queries), twin.randomOverrides())
        }
        for _ in 0..<twin.random.below(4) { try twin.commit(documents: 1 + twin.random.below(10)) }
        let checker = QueryChecker(twin, seed: seed)
        for query in queries where tally.failures < 3 { try checker.check(query, at: nil, &tally) }
        for query in queries where twin.random.chance(40) && tally.failures < 3 {
            let index = twin.random.below(twin.history.count)
            // Between two commits as well as at one.
            let between = index + 1 < twin.history.count ? Int64(twin.random.below(2)) : 0
            try checker.check(query, at: twin.history[index].version + between, &tally)
        }
    }
}

/// How many queries were compared, and how many failed.
struct QueryTally {
    var compared = 0
    var refused: [String: Int] = [:]
    var withResults = 0
    var failures = 0
    /// How often plans had a trait.
    var traits: [String: Int] = [:]

    mutating func note(_ plan: QueryPlan, _ query: NormalizedQuery) {
        var found: Set<String> = plan.branches.count > 1 ? ["several branches"] : []
        for branch in plan.branches {
            if branch.sources.count > 1 { found.insert(branch.complemented.isEmpty ? "join" : "join of composites") }
            if branch.complemented.count > 1 { found.insert("composite") }
            if branch.complemented.contains(true) { found.insert("descending component") }
            if !branch.components.isEmpty { found.insert("component filter") }
            if branch.names != nil { found.insert("filter on names") }
            if branch.nameIsPath, branch.sources[0].isGroupScope { found.insert("group") }
            if branch.nameComplemented { found.insert("descending names") }
            if !branch.isFullyOrdered(query.orders) { found.insert("sorted") }
            if !branch.residual.isEmpty { found.insert("filter on documents") }
            if branch.isExact, branch.sources.count == 1 { found.insert("exact") }
            if query.hasBounds { found.insert(branch.isExact ? "exact with bounds" : "bounds") }
            if branch.reverse { found.insert("backwards") }
        }
        for trait in found { traits[trait, default: 0] += 1 }
    }

    /// Every kind of plan has been used many times.
    func expectAllTraits(sourceLocation: SourceLocation = #_sourceLocation) {
        for trait in [
            "several branches", "join", "join of composites", "composite", "descending component", "component filter",
            "filter on names", "group", "descending names", "sorted", "filter on documents", "exact",
            "exact with bounds",
            "bounds", "backwards",
        ] {
            #expect(traits[trait, default: 0] > 5, "\(trait): \(traits)", sourceLocation: sourceLocation)
        }
    }

    func expectMostlyAccepted(sourceLocation: SourceLocation = #_sourceLocation) {
        let refusals = refused.values.reduce(0, +)
        #expect(refusals * 3 < compared, "refused: \(refused)", sourceLocation: sourceLocation)
        #expect(withResults * 4 > compared, "\(withResults) of \(compared) had results", sourceLocation: sourceLocation)
        print("compared \(compared) queries, \(withResults) with results; refused \(refused); plans \(traits)")
    }
}

/// Compares one database's answers with its twin's.
struct QueryChecker {
    let twin: RandomDatabase
    let seed: UInt64

    init(_ twin: RandomDatabase, seed: UInt64) {
        self.twin = twin
        self.seed = seed
    }

    /// - Parameter time: of the requested state; nil for the present.
    func check(_ query: Query, at time: Int64?, _ tally: inout QueryTally) throws {
        do throws(Status) {
            let normalized = try NormalizedQuery(query)
            tally.note(try plan(normalized), normalized)
        } catch {
            tally.refused[error.message.prefix(40) + "", default: 0] += 1
            return
        }
        tally.compared += 1
        let state = time.map { twin.state(at: $0) } ?? twin.state
        if !NaiveQuery(query).matches(in: state).isEmpty { tally.withResults += 1 }
        guard let difference = difference(query, at: time, state) else { return }
        tally.failures += 1
        let small = shrink(query) { self.difference($0, at: time, state) != nil }
        let plan = try plan(try NormalizedQuery(small))
        report(
            """
            seed \(seed), time \(time.map { "\($0)" } ?? "now"): \(difference)
            query: \(small.summary)
            shrunk: \(self.difference(small, at: time, state) ?? "")
            plan: \(plan.branches.map { "\($0.sources.map(\.properties)) reverse \($0.reverse) parts \($0.parts.count)" })
            """)
    }

    private func plan(_ query: NormalizedQuery) throws(Status) -> QueryPlan {
        let view = try twin.database.view()
        return try Planner(query: query, catalog: view.catalog, snapshot: view.snapshot).plan()
    }

    /// NUL bytes would end the line in programs that show the message.
    private func report(_ string: String) {
        Issue.record("\(string.replacing("\u{0}", with: "␀"))")
    }

    /// The defect of the answer to a query; nil when it is correct.
    func difference(_ query: Query, at time: Int64?, _ state: NaiveState) -> String? {
        do throws(Status) {
            let consistency = time.map { Database.Consistency.readTime(Timestamp(microseconds: $0)) } ?? .strong
            let view = try twin.database.view(consistency)
            return try difference(query, in: view, state)
        } catch {
            return "failed: \(error)"
        }
    }

    func difference(_ query: Query, in view: ReadView, _ state: NaiveState) throws(Status) -> String? {
        let expected = NaiveQuery(query).results(in: state)
        if let difference = compare(try view.results(query), expected) { return difference }
        if let difference = try pagedDifference(query, in: view, expected) { return difference }
        return try aggregationDifference(query, in: view, state, count: expected.count)
    }

    private func compare(_ results: [QueryResult], _ expected: [NaiveDocument]) -> String? {
        let names = results.map { DocumentKey.decode($0.key)?.string ?? "?" }
        if names.map({ Array($0.utf8) }) != expected.map({ Array($0.path.string.utf8) }) {
            return "results are \(names) instead of \(expected.map(\.path.string))"
        }
        for (result, document) in zip(results, expected) {
            if result.document.fields != FieldsCodec.encode(document.fields)
                || result.document.createVersion != document.createTime
                || result.document.updateVersion != document.updateTime
            {
                return "\(document.path) has another content or other times"
            }
        }
        return nil
    }

    /// The same in pages: each continues after the last result of the one before.
    private func pagedDifference(
        _ query: Query, in view: ReadView, _ expected: [NaiveDocument]
    ) throws(Status) -> String? {
        var paged: [QueryResult] = []
        var rest = try NormalizedQuery(query)
        while paged.count < expected.count {
            let execution = try QueryExecution(rest, view: view)
            var last: QueryResult?
            for _ in 0..<3 {
                guard let result = try execution.next() else { break }
                paged.append(result)
                last = result
            }
            guard let last else { break }
            rest = try rest.continued(after: last, remaining: query.limit.map { $0 - paged.count }, offset: 0)
        }
        return compare(paged, expected).map { "in pages, " + $0 }
    }

    private func filtersNames(_ filter: Filter) -> Bool {
        switch filter {
        case .and(let filters), .or(let filters): filters.contains(where: filtersNames)
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName
        }
    }

    private func aggregationDifference(
        _ query: Query, in view: ReadView, _ state: NaiveState, count: Int
    ) throws(Status) -> String? {
        let counted = try AggregationExecution(
            query, [Aggregation(alias: "n", operator: .count(upTo: nil))], view: view
        ).run()
        if counted.first?.value != .integer(Int64(count)) { return "count is \(counted) instead of \(count)" }
        let path = FieldPath(["a", "b"][count % 2])
        let operators: [Aggregation.Operator] = [.count(upTo: 3), .sum(path), .average(path)]
        let isKindless = query.scope == .anyCollection || query.scope == .allDescendants
        let documents = NaiveQuery(query, existing: [path]).results(in: state)
        // The order cannot continue after the name, and kindless queries can use only names.
        if isKindless || query.orders.last?.field.isDocumentName ?? false { return nil }
        if query.filter.map(filtersNames) ?? false { return nil }
        let results = try AggregationExecution(
            query, operators.enumerated().map { Aggregation(alias: "r\($0.offset)", operator: $0.element) }, view: view
        ).run()
        for (op, result) in zip(operators, results) {
            let expected = NaiveQuery.aggregate(op, over: documents)
            let scale = documents.compactMap { $0.value(at: path)?.finiteMagnitude }.reduce(1, +)
            if !same(result.value, expected, scale) { return "\(op) is \(result.value) instead of \(expected)" }
        }
        return nil
    }

    /// Doubles may differ in their last bits, relative to the greatest summand.
    private func same(_ lhs: Value, _ rhs: Value, _ scale: Double) -> Bool {
        guard case .double(let left) = lhs, case .double(let right) = rhs else { return lhs == rhs }
        if left.isFinite, right.isFinite, scale.isFinite { return abs(left - right) <= 1e-14 * scale }
        // Sums of the greatest doubles overflow or not, by the order of addition.
        return left == right || (left.isNaN && right.isNaN) || !scale.isFinite
    }
}

extension Value {
    fileprivate var finiteMagnitude: Double? {
        switch self {
        case .integer(let number): abs(Double(number))
        case .double(let number): number.isFinite ? abs(number) : nil
        default: nil
        }
    }
}

/// Removes parts of a query as long as it still fails.
func shrink(_ query: Query, while fails: (Query) -> Bool) -> Query {
    var small = query
    var isSmaller = true
    while isSmaller {
        isSmaller = false
        for candidate in smallerQueries(small) where isAccepted(candidate) && fails(candidate) {
            small = candidate
            isSmaller = true
            break
        }
    }
    return small
}

private func isAccepted(_ query: Query) -> Bool {
    statusOf { () throws(Status) in _ = try NormalizedQuery(query) } == nil
}

private func smallerQueries(_ query: Query) -> [Query] {
    var candidates: [Query] = []
    func add(_ change: (inout Query) -> Void) {
        var copy = query
        change(&copy)
        candidates.append(copy)
    }
    if query.start != nil { add { $0.start = nil } }
    if query.end != nil { add { $0.end = nil } }
    if query.limit != nil { add { $0.limit = nil } }
    if query.offset != 0 { add { $0.offset = 0 } }
    for index in query.orders.indices { add { $0.orders.remove(at: index) } }
    for index in query.start?.values.indices ?? 0..<0 where index == query.start!.values.count - 1 {
        add { $0.start!.values.removeLast() }
    }
    for index in query.end?.values.indices ?? 0..<0 where index == query.end!.values.count - 1 {
        add { $0.end!.values.removeLast() }
    }
    if let filter = query.filter {
        add { $0.filter = nil }
        for smaller in smallerFilters(filter) { add { $0.filter = smaller } }
    }
    return candidates
}

private func smallerFilters(_ filter: Filter) -> [Filter] {
    switch filter {
    case .and(let filters), .or(let filters):
        var candidates = filters
        for index in filters.indices {
            var fewer = filters
            fewer.remove(at: index)
            if !fewer.isEmpty { candidates.append(rebuilt(filter, fewer)) }
            for smaller in smallerFilters(filters[index]) {
                var changed = filters
                changed[index] = smaller
                candidates.append(rebuilt(filter, changed))
            }
        }
        return candidates
    case .field(let path, let op, .array(let values))
    where [.in, .notIn, .arrayContainsAny].contains(op) && values.count > 1:
        return values.indices.map { index in
            var fewer = values
            fewer.remove(at: index)
            return .field(path, op, .array(fewer))
        }
    default: return []
    }
}

private func rebuilt(_ filter: Filter, _ members: [Filter]) -> Filter {
    if case .and = filter { .and(members) } else { .or(members) }
}
