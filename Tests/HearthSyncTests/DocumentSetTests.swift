import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

@Suite("Document sets and views")
struct DocumentSetTests {
    private static let query = ClientQuery(
        path: ResourcePath("c"), orders: [Query.Order(field: FieldPath("n"), descending: true)])

    private func document(_ id: Int, _ n: Int) -> ClientDocument { .found("c/\(id)", 1, ["n": .integer(Int64(n))]) }

    private static let comparators = [
        query.comparator, .byKey, DocumentComparator(orders: [Query.Order(field: .documentName, descending: true)]),
    ]

    @Test("A set always equals the sorted documents", arguments: [UInt64(1), 2, 3], [0, 1, 2])
    func model(seed: UInt64, order: Int) {
        var random = SeededGenerator(seed: seed)
        let comparator = Self.comparators[order]
        var set = DocumentSet(comparator: comparator)
        var model: [ResourcePath: ClientDocument] = [:]
        for round in 0..<4000 {
            let id = random.below(700)
            let key = ResourcePath("c/\(id)")
            if random.chance(round < 2000 ? 20 : 60) {
                #expect(set.remove(key) == model.removeValue(forKey: key))
            } else {
                let document = document(id, random.below(50))
                set.insert(document)
                model[key] = document
            }
            #expect(set.count == model.count && set[key] == model[key])
            if round % 200 == 0 {
                let sorted = model.values.sorted { comparator.compare($0, $1) < 0 }
                #expect(set.documents == sorted && Array(set) == sorted)
                #expect(set.first == sorted.first && set.last == sorted.last)
                for (index, document) in sorted.enumerated() {
                    #expect(set.index(of: document.key) == index && set[index] == document)
                }
                #expect(set == DocumentSet(sorted, comparator: comparator))
            }
        }
    }

    @Test("Documents are sorted as their comparisons say, whatever their ids begin with", arguments: 0..<60)
    func sorting(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let starts = seed % 2 == 0 ? ["shared-prefix-"] : ["", "a", "shared-prefix-", "\u{e9}", "a\u{0}", "z\u{1F600}"]
        let collections = seed % 3 == 0 ? ["c", "c/d/e", "d"] : ["c"]
        var documents: [ResourcePath: ClientDocument] = [:]
        for _ in 0..<200 {
            var id = random.pick(starts)
            for _ in 0..<random.below(12) { id += random.pick(["a", "b", "\u{0}", "7", "\u{ff}"]) }
            if seed % 5 == 0, random.chance(20) { id = "__id\(random.below(2000) - 1000)__" }
            let key = ResourcePath(string: random.pick(collections)).appending(id)
            let n = Value.integer(Int64(random.below(5)))
            documents[key] = ClientDocument(
                key: key, kind: .found, fields: MapValue([MapValue.Field(name: "n", value: n)]))
        }
        for comparator in Self.comparators {
            let expected = documents.values.sorted { comparator.compare($0, $1) < 0 }.map(\.key)
            #expect(comparator.sorted(Array(documents.values)).map(\.key) == expected, "\(seed)")
        }
    }

    @Test("A first result is cut to the limit", arguments: [ClientQuery.LimitType.first, .last])
    func limited(type: ClientQuery.LimitType) {
        var query = ClientQuery.collection("c", limit: 3)
        query.limitType = type
        let view = View(query, remoteKeys: [])
        let snapshot = view.apply(view.computeFirst([5, 1, 4, 2, 3].map { document($0, 0) })).snapshot
        let expected = (type == .first ? 1...3 : 3...5).map { ResourcePath("c/\($0)") }
        #expect(snapshot?.documents.map(\.key) == expected)
        #expect(snapshot?.changes.map(\.document.key) == expected)
    }

    @Test("An old copy of a set does not change")
    func copies() {
        var set = DocumentSet((0..<1000).map { document($0, $0) }, comparator: Self.query.comparator)
        let old = set
        for id in 0..<1000 { set.insert(document(id, -id)) }
        set.remove(ResourcePath("c/5"))
        #expect(old.map(\.key) == (0..<1000).reversed().map { ResourcePath("c/\($0)") })
        #expect(set.count == 999 && set.index(of: ResourcePath("c/5")) == nil)
    }

    @Test("Changes of one document are merged")
    func mergedChanges() {
        let (old, new) = (document(1, 1), document(1, 2))
        func merged(_ kinds: [ViewSnapshot.Change.Kind]) -> ViewSnapshot.Change? {
            var set = DocumentChangeSet()
            set.add(ViewSnapshot.Change(kind: kinds[0], document: old))
            set.add(ViewSnapshot.Change(kind: kinds[1], document: new))
            return set[old.key]
        }
        let table: [([ViewSnapshot.Change.Kind], ViewSnapshot.Change?)] = [
            ([.added, .modified], .init(kind: .added, document: new)),
            ([.added, .metadata], .init(kind: .added, document: new)),
            ([.added, .removed], nil),
            ([.modified, .modified], .init(kind: .modified, document: new)),
            ([.modified, .metadata], .init(kind: .modified, document: new)),
            ([.modified, .removed], .init(kind: .removed, document: old)),
            ([.metadata, .modified], .init(kind: .modified, document: new)),
            ([.metadata, .metadata], .init(kind: .metadata, document: new)),
            ([.metadata, .removed], .init(kind: .removed, document: new)),
            ([.removed, .added], .init(kind: .modified, document: new)),
        ]
        for (kinds, expected) in table { #expect(merged(kinds) == expected, "\(kinds)") }
    }

    /// The definition of limbo, applied to the whole set.
    private func limbo(_ view: View) -> Set<ResourcePath> {
        Set(view.documents.filter { !view.synced.contains($0.key) && !$0.hasLocalMutations }.map(\.key))
    }

    @Test("After any changes a view has the matching documents and the limbo documents", arguments: 1...6)
    func views(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var query = Self.query
        query.filters = [.field(FieldPath("n"), .lessThan, .integer(30))]
        let view = View(query, remoteKeys: [])
        var model: [ResourcePath: ClientDocument] = [:]
        var listened: [ResourcePath: ClientDocument] = [:]
        for round in 0..<800 {
            var changed: [ResourcePath: ClientDocument] = [:]
            for _ in 0...random.below(5) {
                var document = document(random.below(60), random.below(40))
                if random.chance(20) {
                    document = ClientDocument(key: document.key, kind: .missing, version: .seconds(2))
                }
                if random.chance(30) { document.state = .hasLocalMutations }
                changed[document.key] = document
                model[document.key] = document
            }
            var target: TargetChange?
            if random.chance(60) {
                target = TargetChange(isCurrent: random.chance(90))
                for key in changed.keys {
                    if random.chance(60) { target?.added.insert(key) } else { target?.removed.insert(key) }
                }
            }
            let before = view.limbo
            let isPendingReset = random.chance(5)
            let outcome = view.apply(view.computeChanges(changed), target, isPendingReset: isPendingReset)
            let matching = model.values.filter { query.matches($0) }
            #expect(Set(view.documents.map(\.key)) == Set(matching.map(\.key)), "seed \(seed), round \(round)")
            if view.isCurrent, !isPendingReset { #expect(view.limbo == limbo(view), "seed \(seed), round \(round)") }
            #expect(before.subtracting(outcome.limboRemoved).union(outcome.limboAdded) == view.limbo)
            #expect(view.mutatedKeys == Set(view.documents.filter(\.hasLocalMutations).map(\.key)))
            for change in outcome.snapshot?.changes ?? [] {
                let key = change.document.key
                switch change.kind {
                case .added: #expect(listened.updateValue(change.document, forKey: key) == nil)
                case .modified, .metadata: #expect(listened.updateValue(change.document, forKey: key) != nil)
                case .removed: #expect(listened.removeValue(forKey: key) != nil)
                }
            }
            #expect(listened.count == view.documents.count)
        }
    }

    @Test("An acknowledged write waits for the server's update")
    func waitForSync() {
        let view = View(Self.query, remoteKeys: [])
        view.isTargetActive = true
        var local = document(1, 1)
        local.state = .hasLocalMutations
        _ = view.apply(view.computeChanges([local.key: local]))
        var committed = document(1, 2)
        committed.state = .hasCommittedMutations
        #expect(view.apply(view.computeChanges([local.key: committed])).snapshot == nil)
        #expect(view.documents[local.key] == local)
        let remote = document(1, 3)
        let snapshot = view.apply(view.computeChanges([local.key: remote])).snapshot
        #expect(snapshot?.changes == [.init(kind: .modified, document: remote)])
        #expect(snapshot?.hasPendingWrites == false)
    }

    @Test("An acknowledged write that the server's snapshots omit is looked up", arguments: [1, 2])
    func overdue(acknowledged: Int) {
        let view = View(Self.query, remoteKeys: [])
        view.isTargetActive = true
        _ = view.apply(view.computeChanges([:]), TargetChange(isCurrent: true))
        var local = document(1, 1)
        local.state = .hasLocalMutations
        _ = view.apply(view.computeChanges([local.key: local]))
        // The local estimate, or the result of a transform.
        var committed = document(1, acknowledged)
        committed.state = .hasCommittedMutations
        committed.version = .seconds(5)
        _ = view.apply(view.computeChanges([local.key: committed]))
        #expect(view.mutatedKeys == [local.key] && view.limbo.isEmpty)
        #expect(view.overdue(at: .seconds(4), nil).isEmpty, "the server may still send it")
        #expect(view.overdue(at: .seconds(5), TargetChange(isCurrent: false)).isEmpty)
        #expect(view.overdue(at: .seconds(5), TargetChange(isCurrent: true, added: [local.key])).isEmpty)
        let overdue = view.overdue(at: .seconds(5), nil)
        #expect(overdue == [local.key: committed])
        let outcome = view.apply(view.computeChanges(overdue, overdue: [local.key]))
        #expect(outcome.limboAdded == [local.key])
        #expect(outcome.snapshot?.hasPendingWrites == false && outcome.snapshot?.isFromCache == true)
        #expect(view.overdue(at: .seconds(6), nil).isEmpty)
        // The lookup finds that it does not exist.
        let missing = ClientDocument(key: local.key, kind: .missing, version: .seconds(6))
        let last = view.apply(view.computeChanges([local.key: missing]))
        #expect(last.limboRemoved == [local.key] && view.documents.isEmpty && last.snapshot?.isFromCache == false)
    }

    @Test("An acknowledged write that a restored server has lost is looked up, too")
    func lost() {
        let key = document(1, 1).key
        let view = View(Self.query, remoteKeys: [])
        view.isTargetActive = true
        let old = document(1, 1)
        _ = view.apply(view.computeChanges([key: old]), TargetChange(isCurrent: true, added: [key]))
        var local = document(1, 2)
        local.state = .hasLocalMutations
        _ = view.apply(view.computeChanges([key: local]))
        var committed = local
        committed.state = .hasCommittedMutations
        committed.version = .seconds(5)
        #expect(view.apply(view.computeChanges([key: committed])).limboAdded.isEmpty)
        let overdue = view.overdue(at: .seconds(5), nil)
        #expect(overdue == [key: committed])
        #expect(view.apply(view.computeChanges(overdue, overdue: [key])).limboAdded == [key])
        // The server has the old state.
        let last = view.apply(view.computeChanges([key: old]))
        #expect(last.limboRemoved == [key] && view.documents.map(\.fields) == [old.fields])
        #expect(last.snapshot?.isFromCache == false && last.snapshot?.hasPendingWrites == false)
    }

    @Test("A full limit that loses a document requires a refill")
    func refill() {
        var query = Self.query
        query.limit = 2
        let view = View(query, remoteKeys: [])
        let first = Dictionary(uniqueKeysWithValues: (1...3).map { (ResourcePath("c/\($0)"), document($0, $0)) })
        _ = view.apply(view.computeChanges(first))
        #expect(view.documents.map(\.key) == [ResourcePath("c/3"), ResourcePath("c/2")])
        let missing = ClientDocument(key: ResourcePath("c/3"), kind: .missing, version: .seconds(2))
        let changes = view.computeChanges([missing.key: missing])
        #expect(changes.needsRefill)
        var all = first
        all[missing.key] = nil
        let refilled = view.computeChanges(all, after: changes)
        #expect(!refilled.needsRefill)
        let snapshot = view.apply(refilled).snapshot
        #expect(snapshot?.documents.map(\.key) == [ResourcePath("c/2"), ResourcePath("c/1")])
        #expect(snapshot?.changes.map(\.kind) == [.removed, .added])
        let beyond = document(2, -5)
        #expect(view.computeChanges([beyond.key: beyond]).needsRefill, "it sorts after the limit now")
    }
}
