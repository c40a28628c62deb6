import HearthModel
import Testing

@testable import HearthSync

@Suite("Caches: targets, bundles, garbage collection")
struct CacheTargetTests {
    private func data(_ id: Int32, _ query: ClientQuery, _ number: Int64 = 1) -> TargetData {
        TargetData(
            target: query.target, targetID: id, sequenceNumber: number, snapshotVersion: .seconds(3),
            lastLimboFreeVersion: .seconds(2), resumeToken: [1, 0, 2])
    }

    @Test("Targets are found by their contents", arguments: CacheKind.allCases)
    func targets(_ kind: CacheKind) throws {
        try kind.with { cache in
            let targets = cache.targets
            // Different targets with one canonical id.
            let one = ClientQuery.collection("a", [filter("n", .equal, .string("1"))])
            let other = ClientQuery.collection("a", [filter("n", .equal, .integer(1))])
            #expect(one.target.canonicalID == other.target.canonicalID)
            var limited = ClientQuery.collection("a", orders: [("n", true)], limit: 7)
            limited.limitType = .last
            limited.start = ClientQuery.Bound(values: [.double(1)], isInclusive: false)
            try cache.transaction("add") { () throws(Status) in
                #expect(targets.highestTargetID == 0 && targets.count == 0)
                #expect(targets.lastRemoteSnapshotVersion == .none)
                try targets.add(data(2, one))
                try targets.add(data(4, other, 9))
                try targets.add(data(6, limited))
                try targets.add(data(8, ClientQuery(path: ResourcePath("a/1"))))
                try targets.setLastRemoteSnapshotVersion(.seconds(11))
            }
            try cache.transaction("read") { () throws(Status) in
                #expect(targets.highestTargetID == 8 && targets.count == 4 && targets.highestSequenceNumber >= 9)
                #expect(targets.lastRemoteSnapshotVersion == .seconds(11))
                for (query, id) in [(one, 2), (other, 4), (limited, 6), (ClientQuery(path: ResourcePath("a/1")), 8)] {
                    let found = try targets.target(query.target)
                    #expect(found?.targetID == Int32(id))
                    #expect(found?.resumeToken == [1, 0, 2])
                    #expect(found?.snapshotVersion == .seconds(3) && found?.lastLimboFreeVersion == .seconds(2))
                }
                #expect(try targets.target(ClientQuery.collection("b").target) == nil)
                var changed = data(4, other, 10)
                changed.resumeToken = []
                changed.snapshotVersion = .seconds(9)
                try targets.update(changed)
                #expect(try targets.target(other.target)?.snapshotVersion == .seconds(9))
                try targets.remove(data(2, one))
                #expect(try targets.target(one.target) == nil)
                #expect(targets.count == 3 && targets.highestTargetID == 8)
                var ids: [Int32] = []
                try targets.forEach { ids.append($0.targetID) }
                #expect(ids.sorted() == [4, 6, 8])
            }
        }
    }

    @Test("Keys of targets", arguments: CacheKind.allCases)
    func keys(_ kind: CacheKind) throws {
        try kind.with { cache in
            let targets = cache.targets
            let (one, two) = (ResourcePath("a/1"), ResourcePath("a/2"))
            try cache.transaction("keys") { () throws(Status) in
                try targets.add(data(2, .collection("a")))
                try targets.add(data(4, .collection("b")))
                try targets.addKeys([one, two], to: 2)
                try targets.addKeys([one], to: 4)
                try targets.addKeys([one], to: 4)
                #expect(try targets.keys(of: 2) == [one, two])
                try targets.removeKeys([one, ResourcePath("z/z")], from: 2)
                #expect(try targets.keys(of: 2) == [two])
                #expect(try targets.contains(one))
                try targets.removeAllKeys(of: 4)
                #expect(try !targets.contains(one))
                try targets.remove(data(2, .collection("a")))
                #expect(try targets.keys(of: 2).isEmpty)
                #expect(try !targets.contains(two))
            }
        }
    }

    @Test("Bundles and named queries", arguments: CacheKind.allCases)
    func bundles(_ kind: CacheKind) throws {
        try kind.with { cache in
            let bundles = cache.bundles
            var record = BundleRecord(
                id: "b", createTime: .seconds(4), version: 1, totalDocuments: 3, totalBytes: 1 << 40)
            var query = ClientQuery(path: ResourcePath("x/1"), collectionGroup: "g")
            query.filters = [.or([filter("a", .in, .array([.integer(1)])), filter("b", .equal, .null)])]
            query.orders = query.normalizedOrders
            query.limit = 3
            query.limitType = .last
            query.end = ClientQuery.Bound(
                values: [.reference("projects/demo/databases/(default)/documents/x/1/g/5")], isInclusive: true)
            try cache.transaction("bundles") { () throws(Status) in
                #expect(try bundles.bundle("b") == nil)
                #expect(try bundles.namedQuery("q") == nil)
                try bundles.save(record)
                record.version = 2
                try bundles.save(record)
                #expect(try bundles.bundle("b") == record)
                try bundles.save(NamedQuery(name: "q", query: query, readTime: .seconds(8)))
                let again = try bundles.namedQuery("q")
                #expect(again?.readTime == .seconds(8))
                #expect(again?.query == query)
                #expect(again?.query.limitType == .last)
                #expect(again?.query.target == query.target)
                // Names are identified by their bytes.
                try bundles.save(NamedQuery(name: "\u{e9}", query: query, readTime: .seconds(9)))
                try bundles.save(NamedQuery(name: "e\u{301}", query: query, readTime: .seconds(10)))
                #expect(try bundles.namedQuery("\u{e9}")?.readTime == .seconds(9))
            }
        }
    }

    // MARK: Collection

    private final class Views: LocalViewReferences {
        var keys: Set<ResourcePath> = []
        func contains(_ key: ResourcePath) -> Bool { keys.contains(key) }
    }

    @Test("The collector takes the oldest tenth, and nothing in use", arguments: CacheKind.allCases)
    func collector(_ kind: CacheKind) throws {
        try kind.with { cache in
            let views = Views()
            cache.references.localViewReferences = views
            // One orphan in each of 50 transactions.
            for number in 1...50 {
                let key = ResourcePath("a/\(number)")
                try cache.transaction("orphan") { () throws(Status) in
                    try cache.remoteDocuments.add(.found(key.string), readTime: .seconds(1))
                    try cache.references.removeReference(key)
                }
            }
            try cache.transaction("in use") { () throws(Status) in
                _ = try cache.mutationQueue(for: ClientUser(uid: "u")).add(
                    localWriteTime: .none, base: [], mutations: [.set("a/2")])
                views.keys = [ResourcePath("a/3")]
                try cache.targets.add(data(2, .collection("a"), cache.currentSequenceNumber))
                try cache.targets.addKeys([ResourcePath("a/4")], to: 2)
            }
            // 49 orphans and a target: a tenth is 5, with the numbers of a/1, a/2, a/3, a/5 and a/6.
            let outcome = try cache.transaction("collect") { () throws(Status) in
                try cache.collector?.collect(active: [])
            }
            #expect(
                outcome
                    == CollectionOutcome(
                        didRun: true, sequenceNumbersCollected: 5, targetsRemoved: 0, documentsRemoved: 3))
            try cache.transaction("read") { () throws(Status) in
                for (number, isThere) in [
                    (1, false), (2, true), (3, true), (4, true), (5, false), (6, false), (7, true),
                ] {
                    #expect(
                        try cache.remoteDocuments.document(ResourcePath("a/\(number)")).isFound == isThere,
                        "a/\(number)")
                }
            }
        }
    }

    @Test("Targets without listeners are collected with their documents", arguments: CacheKind.allCases)
    func targetsGo(_ kind: CacheKind) throws {
        try kind.with { cache in
            for number in 1...20 {
                let id = Int32(number * 2)
                try cache.transaction("target") { () throws(Status) in
                    try cache.targets.add(data(id, .collection("c\(number)"), cache.currentSequenceNumber))
                    try cache.remoteDocuments.add(.found("a/\(number)"), readTime: .seconds(1))
                    try cache.targets.addKeys([ResourcePath("a/\(number)")], to: id)
                }
            }
            guard let collector = cache.collector else { throw Status.internalError("no collector") }
            collector.parameters.percentile = 20
            let outcome = try cache.transaction("collect") { () throws(Status) in try collector.collect(active: [4]) }
            #expect(
                outcome.sequenceNumbersCollected == 4 && outcome.targetsRemoved == 3 && outcome.documentsRemoved == 3)
            #expect(cache.targets.count == 17)
            // Released: it is the youngest again.
            try cache.transaction("release") { () throws(Status) in
                guard let released = try cache.targets.target(ClientQuery.collection("c5").target) else { return }
                try cache.references.removeTarget(released)
            }
            collector.parameters.sequenceNumbersMax = 1
            let next = try cache.transaction("collect") { () throws(Status) in try collector.collect(active: [4]) }
            #expect(next.targetsRemoved == 0, "the only one of this age is in use")
            let last = try cache.transaction("collect") { () throws(Status) in try collector.collect(active: []) }
            #expect(last.targetsRemoved == 1)
            try cache.transaction("read") { () throws(Status) in
                #expect(try cache.targets.target(ClientQuery.collection("c5").target) != nil)
                #expect(try cache.targets.target(ClientQuery.collection("c2").target) == nil)
            }
        }
    }

    @Test("Below the threshold, and without one, nothing is collected", arguments: CacheKind.allCases)
    func threshold(_ kind: CacheKind) throws {
        for threshold in [1 << 30, CollectionParameters.never] {
            try kind.with(thresholdBytes: threshold) { cache in
                try cache.transaction("add") { () throws(Status) in
                    try cache.remoteDocuments.add(.found("a/1"), readTime: .seconds(1))
                    #expect(try cache.remoteDocuments.size > 0)
                    #expect(try cache.collector?.collect(active: []) == CollectionOutcome(didRun: false))
                }
            }
        }
    }
}
