import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The order of waiting queries, as a list in which each is compared with all before it.
private struct NaiveQueryLocks {
    struct Lock {
        var number: Int
        var owner: UInt64
        var footprint: QueryFootprint
        var isGranted: Bool
    }

    private(set) var locks: [Lock] = []

    private func isBefore(_ earlier: Lock, _ later: Lock) -> Bool {
        earlier.number < later.number && earlier.owner != later.owner
            && (earlier.footprint.mayOverlap(later.footprint))
    }

    func blockers(of lock: Lock) -> [Lock] { locks.filter { isBefore($0, lock) } }

    mutating func append(_ number: Int, _ owner: UInt64, _ footprint: QueryFootprint) -> Bool {
        var lock = Lock(number: number, owner: owner, footprint: footprint, isGranted: false)
        lock.isGranted = blockers(of: lock).isEmpty
        locks.append(lock)
        return lock.isGranted
    }

    /// - Returns: the numbers of the locks that are granted now.
    mutating func remove(_ numbers: Set<Int>) -> [Int] {
        locks.removeAll { numbers.contains($0.number) }
        var granted: [Int] = []
        for index in locks.indices where !locks[index].isGranted && blockers(of: locks[index]).isEmpty {
            locks[index].isGranted = true
            granted.append(locks[index].number)
        }
        return granted
    }

    func waiting(of owner: UInt64) -> [Lock] { locks.filter { $0.owner == owner && !$0.isGranted } }

    /// All owners for which an owner waits, directly or through others.
    func awaited(by owner: UInt64) -> Set<UInt64> {
        reachable(from: owner) { owner in waiting(of: owner).flatMap { blockers(of: $0).map(\.owner) } }
    }
}

private func reachable(from start: UInt64, _ next: (UInt64) -> [UInt64]) -> Set<UInt64> {
    var found: Set<UInt64> = []
    var open = [start]
    while let owner = open.popLast() {
        for other in next(owner) where found.insert(other).inserted { open.append(other) }
    }
    return found
}

/// Locks of random queries, beside a list of all that predicts them.
private struct LockRun {
    private struct Held {
        var number: Int
        var id: QueryLocks.LockID
        var owner: UInt64
        var footprint: QueryFootprint
    }

    private var random: SeededGenerator
    private let footprints: [QueryFootprint]
    private var locks = QueryLocks()
    private var naive = NaiveQueryLocks()
    private var held: [Held] = []
    /// The numbers of the reads that were called.
    private let called = Gathered<Int>()
    private var calledCount = 0

    private(set) var waits = 0
    private(set) var grants = 0
    private(set) var touched = 0

    init(_ random: SeededGenerator, _ footprints: [QueryFootprint]) {
        self.random = random
        self.footprints = footprints
    }

    /// Adds a lock, or removes some of an owner.
    mutating func step(_ number: Int) {
        if random.chance(55) || held.isEmpty { add(number) } else { removeSome() }
    }

    private mutating func add(_ number: Int) {
        let owner = UInt64(1 + random.below(12))
        let footprint = random.pick(footprints)
        let (id, isGranted) = locks.append(owner, footprint) { [called] in called.append(number) }
        guard let id else {
            // The owner has the same already: it keeps its lock, or its wait.
            let known = held.first { $0.owner == owner && $0.footprint.key == footprint.key }
            let isWaiting = naive.waiting(of: owner).contains { $0.number == known?.number }
            #expect(known != nil && isGranted == !isWaiting)
            return
        }
        let expected = naive.append(number, owner, footprint)
        #expect(isGranted == expected)
        if !isGranted { waits += 1 }
        held.append(Held(number: number, id: id, owner: owner, footprint: footprint))
    }

    private mutating func removeSome() {
        let owner = random.pick(held).owner
        var leaving: [Held] = []
        for lock in held where lock.owner == owner && random.chance(70) { leaving.append(lock) }
        held.removeAll { lock in leaving.contains { $0.number == lock.number } }
        let (_, granted) = locks.remove(leaving.map(\.id))
        for call in granted.flatMap(\.calls) { call() }
        let expected = naive.remove(Set(leaving.map(\.number)))
        // Of several reads with one lock all are called.
        let own = Set(held.map(\.number))
        #expect(takeCalled().filter(own.contains) == expected)
        grants += expected.count
    }

    private mutating func takeCalled() -> [Int] {
        let all = called.values
        defer { calledCount = all.count }
        return Array(all[calledCount...])
    }

    /// Each owner waits for exactly those that the list predicts.
    func compareOwners() {
        for owner in Set(held.map(\.owner)) {
            func ids(_ owner: UInt64) -> [QueryLocks.LockID] {
                held.filter { $0.owner == owner }.map(\.id)
            }
            let found = reachable(from: owner) { locks.owners(before: ids($0)) }
            #expect(found == naive.awaited(by: owner))
            let holders = Set(
                naive.waiting(of: owner).flatMap { naive.blockers(of: $0).filter(\.isGranted).map(\.owner) })
            #expect(Set(locks.holders(before: ids(owner)).map(\.owner)) == holders)
            let isAwaited = naive.locks.contains { lock in
                !lock.isGranted && naive.blockers(of: lock).contains { $0.owner == owner }
            }
            if isAwaited { #expect(locks.areAwaited(ids(owner))) }
        }
    }

    /// The granted locks that a change touches are found near it.
    mutating func compareHeld(near change: Change) throws {
        func touches(_ matcher: QueryMatcher) throws -> Bool {
            for state in [change.before, change.after].compactMap({ $0 })
            where try matcher.matches(key: change.key, fields: state.fields) {
                return true
            }
            return false
        }
        let found = try locks.held(near: change, otherThan: 1).filter { try touches($0.matcher) }
        let expected = try naive.locks.filter {
            try $0.isGranted && $0.owner != 1 && touches($0.footprint.matcher)
        }
        touched += expected.count
        #expect(Set(found.map(\.owner)) == Set(expected.map(\.owner)))
    }

    mutating func removeAll() {
        _ = locks.remove(held.map(\.id))
        #expect(locks.isEmpty)
    }
}

@Suite struct QueryLockTests {
    /// Random queries are added and removed: each owner waits for exactly those that a list of all predicts.
    @Test func everyOwnerWaitsForTheRightOwners() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var waits = 0
        var grants = 0
        var touched = 0
        for _ in 0..<(20 * TestRun.effort) {
            var twin = try RandomDatabase(SeededGenerator(seed: random.next()))
            defer { twin.database.close() }
            let sets = Gathered<ChangeSet>()
            twin.database.observe { sets.append($0) }
            let footprints = (0..<60).compactMap { _ in
                (try? NormalizedQuery(twin.randomQuery())).map { QueryFootprint(QueryMatcher($0)) }
            }
            var run = LockRun(random.fork(), footprints)
            for number in 0..<200 {
                run.step(number)
                if number % 4 == 0 { run.compareOwners() }
                if number % 20 == 0 {
                    try twin.commit(documents: 2)
                    for change in sets.values.last?.changes ?? [] { try run.compareHeld(near: change) }
                }
            }
            run.removeAll()
            waits += run.waits
            grants += run.grants
            touched += run.touched
        }
        #expect(waits > 100 && grants > 100 && touched > 20)
    }

    // MARK: Growth

    private func footprint(_ filter: Filter) throws -> QueryFootprint {
        let parent = ResourceName(database: testDatabaseName, path: ResourcePath([]))
        var query = Query(parent: parent, scope: .collection("c"))
        query.filter = filter
        return QueryFootprint(QueryMatcher(try NormalizedQuery(query)))
    }

    private static func equal(_ field: String, _ value: Int) -> Filter {
        .field(FieldPath(field), .equal, .integer(Int64(value)))
    }

    private static let distinct: [String: @Sendable (Int) -> Filter] = [
        "a value": { equal("n", $0) },
        "a range": {
            .and([
                .field(FieldPath("n"), .greaterThanOrEqual, .integer(Int64(10 * $0))),
                .field(FieldPath("n"), .lessThan, .integer(Int64(10 * $0 + 10))),
            ])
        },
        "two values of which one is the same": { .and([equal("all", 1), equal("n", $0)]) },
        "values of a disjunction": {
            .field(FieldPath("n"), .in, .array([.integer(Int64($0)), .integer(Int64(-1 - $0))]))
        },
    ]

    /// The cost of one more query besides n others that it does not overlap, and of a change that one of them matches.
    @Test(arguments: distinct.keys.sorted())
    func queriesWithoutOverlapCostNothing(kind: String) throws {
        let filter = try #require(Self.distinct[kind])
        var visits: [Int] = []
        for count in kind == "a value" ? [100, 1000, 10_000] : [30, 300, 3000] {
            var locks = QueryLocks()
            var ids: [QueryLocks.LockID] = []
            for number in 0..<count {
                let (id, isGranted) = locks.append(UInt64(number + 1), try footprint(filter(number))) {}
                #expect(isGranted)
                ids.append(try #require(id))
            }
            let before = locks.visits
            let (id, isGranted) = locks.append(1_000_000, try footprint(filter(count))) {}
            let (same, isFree) = locks.append(1_000_001, try footprint(filter(count / 2))) {}
            #expect(isGranted && !isFree)
            #expect(locks.holders(before: [try #require(same)]).map(\.owner) == [UInt64(count / 2 + 1)])
            let (_, granted) = locks.remove([ids[count / 2]])
            #expect(granted.map(\.owner) == [1_000_001])
            _ = locks.remove([try #require(id)])
            visits.append(locks.visits - before)
            var fields = MapValue()
            fields.set("n", .integer(Int64(kind == "a range" ? 75 : 7)))
            fields.set("all", .integer(1))
            let document = StoredDocument(createVersion: 1, updateVersion: 1, fields: FieldsCodec.encode(fields))
            let change = Change(key: DocumentKey.encode(ResourcePath(["c", "a"])), before: nil, after: document)
            let held = try locks.held(near: change, otherThan: 0).map(\.owner)
            // Few queries are filed under a common value.
            #expect(held.contains(8) && held.count <= 2)
        }
        // A hundred times as many may increase the cost by the square of a logarithm.
        #expect(visits[2] < 400, "\(visits)")
    }

    /// Transactions with one query queue like those that read one document.
    @Test func oneQueryOfManyIsAQueue() throws {
        for count in [100, 1000, 10_000] {
            var locks = QueryLocks()
            let calls = Gathered<Int>()
            var ids: [QueryLocks.LockID] = []
            for number in 0..<count {
                let (id, isGranted) = locks.append(UInt64(number + 1), try footprint(Self.equal("n", 1))) {
                    calls.append(number)
                }
                #expect(isGranted == (number == 0))
                ids.append(try #require(id))
            }
            for id in ids.prefix(50) {
                for (_, granted) in locks.remove([id]).granted { for call in granted { call() } }
            }
            #expect(calls.values == Array(1...50))
            #expect(locks.visits <= 200)
            #expect(locks.owners(before: [ids[90]]) == [90])
        }
    }

    @Test func anOwnerDoesNotWaitBehindThoseWhoWaitForIt() throws {
        var locks = QueryLocks()
        let query = try footprint(Self.equal("n", 1))
        #expect(locks.append(1, query) {}.isGranted)
        #expect(!locks.append(2, query) {}.isGranted)
        let again = locks.append(1, query) {}
        #expect(again.isGranted && again.id == nil)
    }
}
