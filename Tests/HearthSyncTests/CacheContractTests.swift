import HearthModel
import Testing

@testable import HearthSync

/// The engine's requirements of every cache.
@Suite("Caches: documents, mutations, overlays")
struct CacheContractTests {
    private let alice = ClientUser(uid: "alice")

    @Test("Batches are stored in order, separately for each user", arguments: CacheKind.allCases)
    func mutationQueue(_ kind: CacheKind) throws {
        try kind.with { cache in
            let queue = cache.mutationQueue(for: alice)
            try cache.transaction("empty") { () throws(Status) in
                #expect(try queue.isEmpty)
                #expect(try queue.highestUnacknowledgedBatchID == MutationBatch.unknownID)
                #expect(try queue.nextBatch(after: -1) == nil)
                #expect(try queue.batches(affecting: [ResourcePath("a/1")]).isEmpty)
            }
            let batches = try addThreeBatches(cache, queue)
            #expect(batches.map(\.id) == [1, 2, 3])
            let bob = cache.mutationQueue(for: ClientUser(uid: "bob"))
            try cache.transaction("other") { () throws(Status) in
                #expect(try bob.isEmpty)
                #expect(try bob.add(localWriteTime: .none, base: [], mutations: [.set("a/1")]).id == 4)
                #expect(try queue.batches(affecting: [ResourcePath("a/1")]).map(\.id) == [1, 2])
                #expect(try bob.batch(1) == nil)
            }
            try expectThreeBatches(cache)
            #expect(
                code { try cache.transaction("wrong") { () throws(Status) in try queue.remove(batches[1]) } }
                    == .internal)
            try cache.transaction("remove") { () throws(Status) in
                try queue.remove(batches[0])
                #expect(try queue.allBatches.map(\.id) == [2, 3])
                #expect(try queue.batches(affecting: [ResourcePath("b/2")]).isEmpty)
                #expect(try queue.contains(ResourcePath("a/1")))
                try queue.remove(batches[1])
                #expect(try !queue.contains(ResourcePath("a/1")))
                try queue.remove(batches[2])
                #expect(try queue.isEmpty)
                #expect(try queue.add(localWriteTime: .none, base: [], mutations: [.set("a/1")]).id == 5)
            }
        }
    }

    private func addThreeBatches(_ cache: any Persistence, _ queue: any MutationQueue) throws -> [MutationBatch] {
        try cache.transaction("add") { () throws(Status) in
            [
                try queue.add(
                    localWriteTime: .seconds(5), base: [.set("a/1", ["n": .integer(1)])],
                    mutations: [.set("a/1", ["x": .integer(1)]), .set("b/2")]),
                try queue.add(localWriteTime: .seconds(6), base: [], mutations: [.set("a/1"), .set("a/1")]),
                try queue.add(
                    localWriteTime: .seconds(7), base: [],
                    mutations: [Mutation(key: ResourcePath("c/3"), kind: .delete, precondition: .exists(true))]),
            ]
        }
    }

    private func expectThreeBatches(_ cache: any Persistence) throws {
        let again = cache.mutationQueue(for: alice)
        try cache.transaction("read") { () throws(Status) in
            #expect(try again.allBatches.map(\.id) == [1, 2, 3])
            let first = try again.batch(1)
            #expect(first?.localWriteTime == .seconds(5))
            #expect(first?.baseMutations.count == 1)
            #expect(first?.keys == [ResourcePath("a/1"), ResourcePath("b/2")])
            if case .set(let fields)? = first?.mutations.first?.kind {
                #expect(fields == MapValue(["x": .integer(1)]))
            } else {
                Issue.record("no set")
            }
            #expect(try again.batch(3)?.mutations.first?.precondition == .exists(true))
            #expect(try again.nextBatch(after: 1)?.id == 2)
            #expect(try again.nextBatch(after: 3) == nil)
            #expect(try again.highestUnacknowledgedBatchID == 3)
            let keys: Set = [ResourcePath("a/1"), ResourcePath("c/3"), ResourcePath("z/9")]
            #expect(try again.batches(affecting: keys).map(\.id) == [1, 2, 3])
            #expect(try again.contains(ResourcePath("b/2")))
            #expect(try !again.contains(ResourcePath("b/3")))
        }
    }

    /// The server recognises a repeated batch by its bytes, also after a restart.
    @Test("A repeated batch has the same bytes", arguments: CacheKind.allCases)
    func repetition(_ kind: CacheKind) throws {
        let values: [Value] = [
            .null, .boolean(true), .integer(.min), .integer(0), .double(-0.0), .double(.nan), .double(.infinity),
            .double(5e-324), .timestamp(Timestamp(microseconds: -1)), .string(""), .string("é e\u{301} \u{0}"),
            .bytes([]),
            .bytes([0, 255]), .reference("projects/p/databases/(default)/documents/c/d"),
            .geoPoint(GeoPoint(latitude: -90, longitude: 0)), .array([]), .array([.map([:]), .null]),
            .vector([0, -1.5]),
            .map([:]), .map(["b": .integer(1), "a": .map(["x y": .null])]),
        ]
        let fields = MapValue(values.enumerated().map { MapValue.Field(name: "f\($0.offset)", value: $0.element) })
        // Neither may be an element of an array.
        let elements = values.filter { value in
            switch value {
            case .array, .vector: false
            default: true
            }
        }
        let operations: [FieldTransform.Operation] = [
            .requestTime, .increment(.integer(1)), .increment(.double(0.5)), .minimum(.double(.nan)),
            .maximum(.integer(2)), .appendMissingElements(elements), .removeAllFromArray(elements),
        ]
        let transforms = operations.enumerated().map {
            FieldTransform(path: FieldPath("t\($0.offset)"), operation: $0.element)
        }
        let key = ResourcePath("c/a")
        let mask = values.indices.map { FieldPath("f\($0)") } + [FieldPath(segments: ["gone", "`odd` name."])]
        let mutations = [
            Mutation(key: key, kind: .set(fields), transforms: transforms, precondition: .none),
            Mutation(key: key, kind: .patch(fields, mask: mask), transforms: transforms, precondition: .exists(true)),
            Mutation(key: key, kind: .patch([:], mask: []), transforms: [], precondition: .updateTime(.seconds(3))),
            Mutation(key: key, kind: .delete, precondition: .exists(false)),
            Mutation(key: key, kind: .verify, precondition: .exists(true)),
        ]
        let serializer = MutationSerializer(database: DatabaseName(project: "p"))
        try kind.with { cache in
            let queue = cache.mutationQueue(for: alice)
            let added = try cache.transaction("add") { () throws(Status) in
                try queue.add(localWriteTime: Timestamp(microseconds: 1), base: [], mutations: mutations)
            }
            let read = try cache.transaction("read") { () throws(Status) in
                try cache.mutationQueue(for: alice).batch(added.id)
            }
            #expect(read?.damage == nil)
            #expect(read?.localWriteTime == added.localWriteTime)
            #expect(
                read?.mutations.map { serializer.message($0).protobuf() }
                    == mutations.map { serializer.message($0).protobuf() })
        }
    }

    @Test("Each user has their own stream token", arguments: CacheKind.allCases)
    func streamToken(_ kind: CacheKind) throws {
        try kind.with { cache in
            try cache.transaction("tokens") { () throws(Status) in
                let queue = cache.mutationQueue(for: alice)
                #expect(try queue.stream == StreamResumption())
                try queue.setStream(StreamResumption(id: "s", token: [0, 1, 255]))
                #expect(
                    try cache.mutationQueue(for: alice).stream == StreamResumption(id: "s", token: [0, 1, 255]))
                #expect(try cache.mutationQueue(for: .unauthenticated).stream == StreamResumption())
                try queue.setStreamToken([2])
                #expect(try queue.stream == StreamResumption(id: "s", token: [2]))
            }
            try cache.transaction("durable", isDurable: true) { () throws(Status) in
                try cache.mutationQueue(for: alice).setStream(StreamResumption())
            }
            try cache.transaction("after") { () throws(Status) in
                #expect(try cache.mutationQueue(for: alice).stream == StreamResumption())
            }
        }
    }

    @Test("Overlays are found by key, collection and group", arguments: CacheKind.allCases)
    func overlays(_ kind: CacheKind) throws {
        try kind.with { cache in
            let overlays = cache.overlayCache(for: alice)
            let pending = PendingServerTimestamp(localWriteTime: .seconds(3), previousValue: .integer(1)).value
            try cache.transaction("save") { () throws(Status) in
                try overlays.save(
                    [
                        ResourcePath("a/1"): .set("a/1", ["t": pending]), ResourcePath("a/2"): .set("a/2"),
                        ResourcePath("x/1/a/3"): .set("x/1/a/3"),
                    ], largestBatchID: 1)
                let patch = Mutation(
                    key: ResourcePath("a/4"), kind: .patch(MapValue(), mask: [FieldPath(segments: ["f", "g h"])]))
                try overlays.save([ResourcePath("a/4"): patch], largestBatchID: 2)
                try overlays.save(
                    [ResourcePath("a/2"): Mutation(key: ResourcePath("a/2"), kind: .delete)], largestBatchID: 3)
            }
            try cache.transaction("read") { () throws(Status) in
                let first = try overlays.overlay(of: ResourcePath("a/1"))
                #expect(first?.largestBatchID == 1)
                if case .set(let fields)? = first?.mutation.kind {
                    #expect(fields == MapValue(["t": pending]))
                } else {
                    Issue.record("no set")
                }
                #expect(try overlays.overlay(of: ResourcePath("a/9")) == nil)
                if case .patch(_, let mask)? = try overlays.overlay(of: ResourcePath("a/4"))?.mutation.kind {
                    #expect(mask == [FieldPath(segments: ["f", "g h"])])
                } else {
                    Issue.record("no patch")
                }
                let some = try overlays.overlays(of: [ResourcePath("a/2"), ResourcePath("a/9")])
                #expect(some.mapValues(\.largestBatchID) == [ResourcePath("a/2"): 3])
                let many = Set((0..<200).map { ResourcePath("a/\($0)") })
                #expect(try Set(overlays.overlays(of: many).keys.map(\.string)) == ["a/1", "a/2", "a/4"])
                let inCollection = try overlays.overlays(inCollection: ResourcePath("a"), above: 1)
                #expect(inCollection.mapValues(\.largestBatchID) == [ResourcePath("a/2"): 3, ResourcePath("a/4"): 2])
                let group = try overlays.overlays(inGroup: "a", above: -1, count: 1)
                #expect(group.map(\.key) == [ResourcePath("a/1"), ResourcePath("x/1/a/3")])
                #expect(
                    try overlays.overlays(inGroup: "a", above: -1, count: 3).map(\.overlay.largestBatchID) == [1, 1, 2])
                #expect(try overlays.overlays(inGroup: "a", above: 2, count: 9).map(\.key) == [ResourcePath("a/2")])
                #expect(try cache.overlayCache(for: .unauthenticated).overlay(of: ResourcePath("a/1")) == nil)
            }
            try cache.transaction("remove") { () throws(Status) in
                try overlays.remove(keys: [ResourcePath("a/1"), ResourcePath("a/2"), ResourcePath("a/4")], batchID: 1)
                #expect(try overlays.overlay(of: ResourcePath("a/1")) == nil)
                #expect(try overlays.overlay(of: ResourcePath("a/2")) != nil)
                #expect(try overlays.overlay(of: ResourcePath("x/1/a/3")) != nil)
            }
        }
    }

    @Test("Documents are read as they were written", arguments: CacheKind.allCases)
    func documents(_ kind: CacheKind) throws {
        try kind.with { cache in
            let documents = cache.remoteDocuments
            var found = ClientDocument.found(
                "a/1", 5,
                [
                    "é": .double(-0.0), "e\u{301}": .array([.null, .double(.nan), .integer(.min)]),
                    "v": .vector([1, 2]),
                ])
            found.state = .hasCommittedMutations
            let missing = ClientDocument(key: ResourcePath("a/__id7__"), kind: .missing, version: .seconds(6))
            let unknown = ClientDocument(
                key: ResourcePath("a/ü\u{0}"), kind: .unknown, version: .seconds(7), state: .hasCommittedMutations)
            try cache.transaction("add") { () throws(Status) in
                for document in [found, missing, unknown] { try documents.add(document, readTime: .seconds(9)) }
            }
            try cache.transaction("read") { () throws(Status) in
                for document in [found, missing, unknown] {
                    let again = try documents.document(document.key)
                    #expect(again == document)
                    #expect(again.readTime == .seconds(9))
                    #expect(again.createTime == document.createTime)
                }
                let keys: Set = [found.key, ResourcePath("a/2"), missing.key]
                let several = try documents.documents(keys)
                #expect(Set(several.keys) == keys)
                #expect(several[ResourcePath("a/2")]?.kind == .invalid)
                #expect(several[missing.key]?.kind == .missing)
            }
            try cache.transaction("change") { () throws(Status) in
                try documents.add(.found("a/1", 8, ["x": .integer(1)]), readTime: .seconds(10))
                #expect(try documents.document(found.key) == .found("a/1", 8, ["x": .integer(1)]))
                try documents.remove([found.key, ResourcePath("a/nothing")])
                #expect(try documents.document(found.key).kind == .invalid)
                #expect(try documents.document(missing.key).kind == .missing)
            }
        }
    }

    @Test("Documents of a collection: those that match, or have local changes", arguments: CacheKind.allCases)
    func matching(_ kind: CacheKind) throws {
        try kind.with { cache in
            let documents = cache.remoteDocuments
            try cache.transaction("add") { () throws(Status) in
                for number in 1...9 {
                    try documents.add(
                        .found("a/\(number)", 1, ["n": .integer(Int64(number))]),
                        readTime: .seconds(Int64((number + 2) / 3)))
                }
                try documents.add(.found("b/1", 1, ["n": .integer(1)]), readTime: .seconds(1))
                try documents.add(.found("a/1/a/1", 1, ["n": .integer(8)]), readTime: .seconds(3))
                try documents.add(
                    ClientDocument(key: ResourcePath("a/gone"), kind: .missing, version: .seconds(1)),
                    readTime: .seconds(1))
            }
            try cache.transaction("read") { () throws(Status) in
                func ids(_ query: ClientQuery, _ offset: IndexOffset = .none, _ mutated: Set<ResourcePath> = [])
                    throws(Status) -> (ids: [String], read: Int)
                {
                    var read = 0
                    let found = try documents.documents(matching: query, after: offset, mutated: mutated) { read += $0 }
                    return (found.map(\.key.string).sorted(), read)
                }
                let all = try ids(.collection("a"))
                #expect(all.ids == (1...9).map { "a/\($0)" })
                #expect(all.read == 10)
                let some = ClientQuery.collection("a", [filter("n", .greaterThan, .integer(6))])
                #expect(try ids(some).ids == ["a/7", "a/8", "a/9"])
                #expect(
                    try ids(some, .none, [ResourcePath("a/2"), ResourcePath("a/gone")]).ids
                        == ["a/2", "a/7", "a/8", "a/9", "a/gone"])
                let offset = IndexOffset(readTime: .seconds(2), key: ResourcePath("a/5"), largestBatchID: -1)
                let later = try ids(.collection("a"), offset)
                #expect(later.ids == ["a/6", "a/7", "a/8", "a/9"])
                #expect(try ids(.collection("a", orders: [("missing", false)])).ids == [])
                #expect(try ids(.collection("nothing")).ids == [])
                #expect(try ids(.collection("a/1/a")).ids == ["a/1/a/1"])
            }
        }
    }

    @Test("A scan finds documents under all kinds of ids", arguments: CacheKind.allCases)
    func ids(_ kind: CacheKind) throws {
        let ids = [
            "a", "__id7__", "__id-7__", "_", "a\u{0}b", "\u{0}", "\u{0}\u{1}", "\u{e9}", "\u{2}",
            "a long id of more than 15 bytes",
        ]
        try kind.with { cache in
            for collection in ["c", "c/\u{0}/d"] {
                let path = ResourcePath(string: collection)
                try cache.transaction("add") { () throws(Status) in
                    for id in ids {
                        try cache.remoteDocuments.add(
                            ClientDocument(key: path.appending(id), kind: .found), readTime: .seconds(1))
                    }
                }
                let found = try cache.transaction("read") { () throws(Status) in
                    try cache.remoteDocuments.documents(
                        matching: ClientQuery(path: path), after: .none, mutated: [], onRead: { _ in })
                }
                #expect(Set(found.map(\.key)) == Set(ids.map { path.appending($0) }) && found.count == ids.count)
            }
        }
    }

    @Test("Documents of a group in the order of read time and key", arguments: CacheKind.allCases)
    func group(_ kind: CacheKind) throws {
        try kind.with { cache in
            let documents = cache.remoteDocuments
            try cache.transaction("group") { () throws(Status) in
                for key in ["g/2", "g/10", "g/__id5__", "g/1/g/3", "x/1/g/0"] {
                    try documents.add(.found(key), readTime: .seconds(2))
                }
                try documents.add(.found("g/z"), readTime: .seconds(1))
                try documents.add(.found("h/1"), readTime: .seconds(1))
                let all = try documents.documents(inGroup: "g", after: .none, limit: 99)
                #expect(all.map(\.key.string) == ["g/z", "g/__id5__", "g/1/g/3", "g/10", "g/2", "x/1/g/0"])
                let offset = IndexOffset(readTime: .seconds(2), key: ResourcePath("g/1/g/3"), largestBatchID: -1)
                let rest = try documents.documents(inGroup: "g", after: offset, limit: 2)
                #expect(rest.map(\.key.string) == ["g/10", "g/2"])
                #expect(try documents.documents(inGroup: "none", after: .none, limit: 2).isEmpty)
            }
        }
    }

    @Test("Collections' parents, of remote documents and of explicit additions", arguments: CacheKind.allCases)
    func parents(_ kind: CacheKind) throws {
        try kind.with { cache in
            let indexes = cache.indexManager(for: .unauthenticated)
            try cache.transaction("parents") { () throws(Status) in
                try cache.remoteDocuments.add(.found("x/1/c/1"), readTime: .seconds(1))
                try indexes.addParent(ofCollection: ResourcePath("c"))
                try indexes.addParent(ofCollection: ResourcePath("x/2/c"))
                try indexes.addParent(ofCollection: ResourcePath("x/2/c"))
                #expect(try indexes.parents(ofCollectionID: "c").map(\.string) == ["", "x/1", "x/2"])
                #expect(try indexes.parents(ofCollectionID: "y").isEmpty)
            }
        }
    }
}
