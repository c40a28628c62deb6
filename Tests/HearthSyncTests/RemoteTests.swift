import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthSync

@Suite("Components of the remote store")
struct RemoteTests {
    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    @Test("MD5 has the digests of RFC 1321")
    func md5() {
        let cases = [
            "": "d41d8cd98f00b204e9800998ecf8427e", "a": "0cc175b9c0f1b6a831c399e269772661",
            "message digest": "f96b697d7cb7938d525a2f31aaf161d0",
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890":
                "57edf4a22be3c955ac49da2e2107b67a",
        ]
        for (string, digest) in cases { #expect(Self.hexadecimal(MD5.digest(string.utf8)) == digest) }
    }

    @Test(
        "Bloom filters answer like the golden data", arguments: [1, 500, 5000, 50000], ["1", "01", "0001"])
    func bloomFilters(count: Int, rate: String) throws {
        let prefix = "Validation_BloomFilterTest_MD5_\(count)_\(rate)_"
        let proto = try #require(
            try Conformance.json("bloom-filter", prefix + "bloom_filter_proto.json") as? [String: Any])
        let results = try #require(
            try Conformance.json("bloom-filter", prefix + "membership_test_result.json") as? [String: Any])
        let answers = Array(try #require(results["membershipTestResults"] as? String).utf8)
        let bits = proto["bits"] as? [String: Any] ?? [:]
        let bitmap = [UInt8](Data(base64Encoded: bits["bitmap"] as? String ?? "") ?? Data())
        let message = BloomFilterMessage(
            bits: BitSequenceMessage(bitmap: bitmap, padding: Int32(bits["padding"] as? Int ?? 0)),
            hashCount: Int32(proto["hashCount"] as? Int ?? 0))
        guard let filter = WatchChangeAggregator.usableFilter(message) else {
            #expect(bitmap.isEmpty && !answers.contains(UInt8(ascii: "1")), "only an empty filter is unusable")
            return
        }
        #expect(answers.count == 2 * count)
        let name = "projects/project-1/databases/database-1/documents/coll/doc"
        let wrong = answers.indices.filter { index in
            let hash = BloomFilter.Hash(digest: MD5.digest((name + String(index)).utf8))
            return filter.contains(hash) != (answers[index] == UInt8(ascii: "1"))
        }
        #expect(wrong.isEmpty)
    }

    @Test("Unusable bloom filters")
    func unusable() {
        func isUsable(_ bitmap: [UInt8], _ padding: Int32, _ hashCount: Int32) -> Bool {
            let bits = BitSequenceMessage(bitmap: bitmap, padding: padding)
            return WatchChangeAggregator.usableFilter(BloomFilterMessage(bits: bits, hashCount: hashCount)) != nil
        }
        #expect(isUsable([1], 0, 1) && isUsable([1], 7, 3))
        #expect(!isUsable([1], 8, 1) && !isUsable([1], -1, 1) && !isUsable([1], 0, -1) && !isUsable([1], 0, 0))
        #expect(!isUsable([], 0, 0) && !isUsable([], 1, 1))
        #expect(isUsable([1], 0, 1000) && !isUsable([1], 0, 1001) && !isUsable([1], 0, .max))
        #expect(WatchChangeAggregator.usableFilter(nil) == nil)
    }

    private static let database = DatabaseName(project: "p")

    private func aggregator(
        _ targets: [Int32: ClientQuery], keys: [Int32: Set<ResourcePath>] = [:],
        limbo: Set<Int32> = []
    ) -> WatchChangeAggregator {
        WatchChangeAggregator(
            database: Self.database, remoteKeys: { keys[$0] ?? [] },
            targetData: { targetID in
                targets[targetID].map {
                    TargetData(
                        target: $0.target, targetID: targetID,
                        purpose: limbo.contains(targetID) ? .limboResolution : .listen,
                        sequenceNumber: 1)
                }
            })
    }

    private func change(_ kind: WatchChange.Target.Kind, _ targetIDs: [Int32], token: [UInt8] = [])
        -> WatchChange.Target
    {
        WatchChange.Target(kind: kind, targetIDs: targetIDs, resumeToken: token)
    }

    @Test("Messages for a target apply only after the answers to all its requests")
    func outstanding() {
        let key = ResourcePath("c/a")
        let aggregator = aggregator([2: ClientQuery(path: ResourcePath("c"))])
        for _ in 0..<3 { aggregator.requestSent(2) }
        let document = WatchChange.Document(
            updatedTargetIDs: [2], removedTargetIDs: [], key: key, document: .found("c/a", 1))
        aggregator.take(document)
        aggregator.take(change(.added, [2]))
        aggregator.take(change(.removed, [2]))
        aggregator.take(document)
        #expect(aggregator.remoteEvent(at: .seconds(1)).documentUpdates.isEmpty)
        aggregator.take(change(.added, [2]))
        aggregator.take(document)
        aggregator.take(change(.current, [2], token: [7]))
        let event = aggregator.remoteEvent(at: .seconds(2))
        #expect(event.documentUpdates[key]?.isFound == true)
        #expect(event.targetChanges[2]?.added == [key] && event.targetChanges[2]?.isCurrent == true)
        #expect(event.targetChanges[2]?.resumeToken == [7])
        #expect(aggregator.remoteEvent(at: .seconds(3)).targetChanges.isEmpty, "a snapshot is reported once")
    }

    @Test("A current document target without its document means that the document does not exist")
    func synthesizedDeletion() {
        let key = ResourcePath("c/a")
        let aggregator = aggregator([1: ClientQuery(path: key)], limbo: [1])
        aggregator.requestSent(1)
        aggregator.take(change(.added, [1]))
        aggregator.take(change(.current, [1]))
        let event = aggregator.remoteEvent(at: .seconds(5))
        #expect(event.documentUpdates[key] == ClientDocument(key: key, kind: .missing, version: .seconds(5)))
        #expect(event.limboDocumentChanges == [key])
    }

    @Test("Existence filters: equal counts, a useful bloom filter, and none")
    func existenceFilters() {
        let keys = Set(["c/a", "c/b", "c/d"].map { ResourcePath($0) })
        let query = ClientQuery(path: ResourcePath("c"))
        func event(_ filter: WatchChange.Filter) -> RemoteEvent {
            let aggregator = aggregator([2: query], keys: [2: keys])
            aggregator.requestSent(2)
            aggregator.take(change(.added, [2]))
            aggregator.take(filter)
            return aggregator.remoteEvent(at: .seconds(1))
        }
        #expect(event(.init(targetID: 2, count: 3)).targetMismatches.isEmpty)
        let unknown = event(.init(targetID: 2, count: 2))
        #expect(unknown.targetMismatches == [2: .existenceFilterMismatch])
        #expect(unknown.targetChanges[2]?.removed == keys)
        var names = BloomFilter(count: 2, falsePositiveRate: 0.000001)
        for key in ["c/a", "c/b"] {
            let name = ResourceName(database: Self.database, path: ResourcePath(key)).string
            names.insert(BloomFilter.Hash(digest: MD5.digest(name.utf8)))
        }
        let message = BloomFilterMessage(
            bits: BitSequenceMessage(bitmap: names.bitmap, padding: Int32(names.padding)),
            hashCount: Int32(names.hashCount))
        let result = event(.init(targetID: 2, count: 2, unchangedNames: message))
        #expect(result.targetMismatches.isEmpty && result.targetChanges[2]?.removed == [ResourcePath("c/d")])
        #expect(result.documentUpdates.isEmpty, "such documents become limbo documents")
        let wrong = event(.init(targetID: 2, count: 1, unchangedNames: message))
        #expect(wrong.targetMismatches == [2: .existenceFilterMismatchBloom])
    }

    @Test("Of many targets those without changes receive a token once in a second")
    func quietTargets() {
        let clock = StoppedClock()
        let data = Dictionary(
            uniqueKeysWithValues: (0..<200).map { number in
                let target = ClientQuery.collection("c\(number)").target
                return (Int32(number), TargetData(target: target, targetID: Int32(number), sequenceNumber: 0))
            })
        let aggregator = WatchChangeAggregator(
            database: Self.database, clock: clock, remoteKeys: { _ in [] }, targetData: { data[$0] })
        for id in data.keys { aggregator.requestSent(id) }
        aggregator.take(WatchChange.Target(kind: .added, targetIDs: Array(data.keys)))
        _ = aggregator.remoteEvent(at: .seconds(1))
        func quietTargets(token: UInt8) -> Int {
            aggregator.take(WatchChange.Target(kind: .noChange, targetIDs: [], resumeToken: [token]))
            return aggregator.remoteEvent(at: .seconds(Int64(token))).quietTargets.count
        }
        #expect(quietTargets(token: 2) == 200)
        clock.advance(seconds: 0.5)
        #expect(quietTargets(token: 3) == 0)
        clock.advance(seconds: 0.5)
        #expect(quietTargets(token: 4) == 200)
    }

    @Test("One failure before the first success means offline; a success resets")
    func onlineState() {
        let queue = WorkerQueue(label: "test", firesTimers: false)
        var states: [OnlineState] = []
        let tracker = OnlineStateTracker(queue) { states.append($0) }
        var warnings: [String] = []
        tracker.onWarning = { warnings.append($0) }
        tracker.watchStreamStarts()
        #expect(queue.isScheduled(.onlineStateTimeout))
        tracker.watchStreamFailed(.unavailable("no route"))
        #expect(states == [.offline] && !queue.isScheduled(.onlineStateTimeout))
        tracker.update(.online)
        tracker.watchStreamFailed(.unavailable("no route"))
        #expect(states == [.offline, .online, .unknown])
        tracker.watchStreamStarts()
        queue.runDelayed(through: .onlineStateTimeout)
        #expect(states.last == .offline)
        #expect(warnings.count == 1 && warnings[0].contains("no route"), "reported once, before the first success")
    }

    @Test("A write stream that cannot be opened is reported once, and leaves the state as it is")
    func writeStreamThatFails() {
        var states: [OnlineState] = []
        func warnings(_ events: (OnlineStateTracker) -> Void) -> [String] {
            let tracker = OnlineStateTracker(WorkerQueue(label: "test", firesTimers: false)) { states.append($0) }
            var warnings: [String] = []
            tracker.onWarning = { warnings.append($0) }
            events(tracker)
            return warnings
        }
        let reported = warnings { tracker in
            tracker.writeStreamFailed(.unavailable("no route"))
            tracker.writeStreamFailed(.unavailable("no route"))
        }
        #expect(reported.count == 1 && reported[0].contains("no route"))
        let afterSuccess = warnings { tracker in
            tracker.writeStreamOpened()
            tracker.writeStreamFailed(.unavailable("no route"))
        }
        #expect(afterSuccess.isEmpty && states.isEmpty)
    }

    @Test("Codes of errors are permanent or not")
    func codes() {
        let permanent: Set<Status.Code> = [
            .invalidArgument, .notFound, .alreadyExists, .permissionDenied, .failedPrecondition, .aborted, .outOfRange,
            .unimplemented, .dataLoss,
        ]
        for code in Status.Code.allCases {
            #expect(code.isPermanent == permanent.contains(code))
            #expect(code.isPermanentForWrites == (permanent.contains(code) && code != .aborted))
        }
    }
}
