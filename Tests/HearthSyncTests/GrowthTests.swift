import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

/// The CPU time of this thread for one operation in the presence of many of its kind.
@Suite("Growth")
struct GrowthTests {
    @Test("A snapshot of one of many targets costs the same as of one")
    func targets() {
        func secondsEach(_ count: Int) -> Double {
            let data = Dictionary(
                uniqueKeysWithValues: (0..<count).map { number in
                    let id = Int32(2 * number)
                    let target = ClientQuery.collection("c\(number)").target
                    return (id, TargetData(target: target, targetID: id, sequenceNumber: 0))
                })
            let aggregator = WatchChangeAggregator(
                database: DatabaseName(project: "demo"), remoteKeys: { _ in [] }, targetData: { data[$0] })
            for id in data.keys { aggregator.requestSent(id) }
            let start = threadSeconds()
            for (number, id) in data.keys.sorted().enumerated() {
                let version = Timestamp.seconds(Int64(number))
                aggregator.take(WatchChange.Target(kind: .added, targetIDs: [id]))
                aggregator.take(WatchChange.Target(kind: .current, targetIDs: [id], resumeToken: [1]))
                aggregator.take(
                    WatchChange.Target(kind: .noChange, targetIDs: [], resumeToken: [2], snapshotVersion: version))
                let event = aggregator.remoteEvent(at: version)
                #expect(event.targetChanges.keys.contains(id) && event.targetChanges.count == 1)
                #expect(event.targetChanges[id]?.resumeToken == [2])
            }
            return (threadSeconds() - start) / Double(count)
        }
        let (few, many) = (secondsEach(50), secondsEach(5000))
        #expect(many < 4 * few, "\(few) s, \(many) s")
    }

    @Test("A snapshot of one of many queries costs the same as of one")
    func views() throws {
        func secondsEach(_ count: Int) throws -> Double {
            let core = SyncCore(
                database: SpecDriver.database, persistence: MemoryPersistence(.eager), datastore: SpecBackend(),
                credentials: SpecCredentials(.unauthenticated),
                options: .init(firesTimers: false, schedulesMaintenance: false, tokens: { $0(.success(nil)) }))
            core.start()
            core.queue.drain()
            var events = 0
            let seconds = try core.perform { engine throws(Status) in
                var ids: [Int32] = []
                for number in 0..<count {
                    let listener = QueryListener(.collection("c\(number)"), .init()) { _ in events += 1 }
                    ids.append(try engine.eventManager.add(listener))
                }
                let start = threadSeconds()
                for (number, id) in ids.enumerated() {
                    let document = ClientDocument.found("c\(number)/a", Int64(1 + number))
                    var event = RemoteEvent(snapshotVersion: document.version)
                    event.targetChanges[id] = TargetChange(isCurrent: true, added: [document.key])
                    event.documentUpdates[document.key] = document
                    try engine.apply(event)
                }
                return threadSeconds() - start
            }
            #expect(events == count)
            core.terminate {}
            core.queue.drain()
            return seconds / Double(count)
        }
        let (few, many) = (try secondsEach(50), try secondsEach(5000))
        #expect(many < 4 * few, "\(few) s, \(many) s")
    }

    @Test("A write and its answer cost the same when many are pending", arguments: CacheKind.allCases)
    func pendingWrites(_ kind: CacheKind) throws {
        func secondsEach(_ count: Int) throws -> (write: Double, answer: Double) {
            var seconds = (write: 0.0, answer: 0.0)
            try kind.with { persistence in
                let store = LocalStore(persistence, user: .unauthenticated)
                let start = threadSeconds()
                for number in 0..<count { _ = try store.write([.set("c/\(number)", ["n": .integer(1)])]) }
                let middle = threadSeconds()
                for number in 0..<count {
                    let batch = try #require(try store.nextBatch(after: MutationBatch.unknownID))
                    let version = Timestamp.seconds(Int64(1 + number))
                    _ = try store.acknowledge(
                        BatchResult(
                            batch: batch, commitVersion: version,
                            results: [MutationResult(version: version, transformResults: [])], streamToken: [1]))
                }
                seconds = ((middle - start) / Double(count), (threadSeconds() - middle) / Double(count))
            }
            return seconds
        }
        let (few, many) = (try secondsEach(50), try secondsEach(5000))
        #expect(many.write < 4 * few.write && many.answer < 4 * few.answer, "\(few), \(many)")
    }

    @Test("A change of one document costs the same in a large cache", arguments: CacheKind.allCases)
    func cachedDocuments(_ kind: CacheKind) throws {
        func secondsEach(_ count: Int) throws -> Double {
            var seconds = 0.0
            try kind.with(thresholdBytes: CollectionParameters.never) { persistence in
                let store = LocalStore(persistence, user: .unauthenticated)
                let target = try store.allocate(ClientQuery.collection("c").target)
                var first = RemoteEvent(snapshotVersion: .seconds(1))
                first.targetChanges[target.targetID] = TargetChange(resumeToken: [1], isCurrent: true)
                for number in 0..<count {
                    let document = ClientDocument.found("c/\(number)", 1, ["n": .integer(Int64(number))])
                    first.documentUpdates[document.key] = document
                    first.targetChanges[target.targetID]?.added.insert(document.key)
                }
                let view = View(.collection("c"), remoteKeys: [])
                _ = view.apply(view.computeChanges(try store.apply(first)), first.targetChanges[target.targetID])
                let start = threadSeconds()
                for round in 0..<200 {
                    var event = RemoteEvent(snapshotVersion: .seconds(Int64(2 + round)))
                    let document = ClientDocument.found(
                        "c/\(round * 7 % count)", Int64(2 + round), ["n": .integer(Int64(-1 - round))])
                    event.documentUpdates[document.key] = document
                    event.targetChanges[target.targetID] = TargetChange(
                        resumeToken: [2], isCurrent: true, modified: [document.key])
                    let changes = view.computeChanges(try store.apply(event))
                    let snapshot = view.apply(changes, event.targetChanges[target.targetID]).snapshot
                    #expect(snapshot?.changes.count == 1 && snapshot?.documents.count == count)
                }
                seconds = (threadSeconds() - start) / 200
            }
            return seconds
        }
        let (few, many) = (try secondsEach(100), try secondsEach(10_000))
        #expect(many < 6 * few, "\(few) s, \(many) s")
    }

    @Test("An index query costs the same among many documents")
    func indexedQueries() throws {
        func secondsEach(_ count: Int) throws -> Double {
            var seconds = 0.0
            try CacheKind.sqlite.with(thresholdBytes: CollectionParameters.never) { persistence in
                let store = LocalStore(persistence, user: .unauthenticated)
                try store.configure([FieldIndex("c", ("n", .ascending))])
                var event = RemoteEvent(snapshotVersion: .seconds(1))
                for number in 0..<count {
                    let document = ClientDocument.found("c/\(number)", 1, ["n": .integer(Int64(number))])
                    event.documentUpdates[document.key] = document
                }
                _ = try store.apply(event)
                while try store.backfillIndexes() > 0 {}
                let query = ClientQuery.collection("c", [filter("n", .lessThan, .integer(20))])
                let start = threadSeconds()
                for _ in 0..<50 {
                    #expect(try store.execute(query, usesPreviousResults: false).documents.count == 20)
                }
                seconds = (threadSeconds() - start) / 50
            }
            return seconds
        }
        let (few, many) = (try secondsEach(100), try secondsEach(10_000))
        #expect(many < 6 * few, "\(few) s, \(many) s")
    }
}
