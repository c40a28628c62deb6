import Glibc
import HearthModel
import Testing

@testable import HearthSync

/// What one thing costs beside many others of its kind, in the processor's time of this thread.
@Suite("Growth")
struct GrowthTests {
    private static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test("A snapshot of one of many targets costs what it says of that one")
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
            let start = Self.seconds()
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
            return (Self.seconds() - start) / Double(count)
        }
        let (few, many) = (secondsEach(50), secondsEach(5000))
        #expect(many < 4 * few, "\(few) s, \(many) s")
    }

    @Test("A snapshot of one of many queries costs what it changes of that one")
    func views() throws {
        func secondsEach(_ count: Int) throws -> Double {
            let core = SyncCore(
                database: SpecDriver.database, persistence: MemoryPersistence(.eager), datastore: SpecBackend(),
                credentials: SpecCredentials(.unauthenticated),
                options: .init(usesClock: false, schedulesMaintenance: false, tokens: { $0(.success(nil)) }))
            core.start()
            core.queue.drain()
            var events = 0
            let seconds = try core.perform { engine throws(Status) in
                var ids: [Int32] = []
                for number in 0..<count {
                    let listener = QueryListener(.collection("c\(number)"), .init()) { _ in events += 1 }
                    ids.append(try engine.eventManager.add(listener))
                }
                let start = Self.seconds()
                for (number, id) in ids.enumerated() {
                    let document = ClientDocument.found("c\(number)/a", Int64(1 + number))
                    var event = RemoteEvent(snapshotVersion: document.version)
                    event.targetChanges[id] = TargetChange(isCurrent: true, added: [document.key])
                    event.documentUpdates[document.key] = document
                    try engine.apply(event)
                }
                return Self.seconds() - start
            }
            #expect(events == count)
            core.terminate {}
            core.queue.drain()
            return seconds / Double(count)
        }
        let (few, many) = (try secondsEach(50), try secondsEach(5000))
        #expect(many < 4 * few, "\(few) s, \(many) s")
    }
}
