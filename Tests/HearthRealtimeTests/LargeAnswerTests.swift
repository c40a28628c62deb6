import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

import Glibc

@testable import HearthHost
@testable import HearthRealtimeServer

private let alice = Requester(account: 1, connection: 1, isAdministrator: false)
private let aliceElsewhere = Requester(account: 1, connection: 2, isAdministrator: false)

/// Answers and changes that are too large to wait in memory.
@Suite struct LargeAnswerTests {
    private static let folder = SpillFile.temporaryFolder

    private func written(_ json: [UInt8], pieces: [Int], memoryBytesMax: Int = 0) throws -> RealtimeData {
        let budget = MemoryBudget(bytesMax: 1 << 30, shareBytesMax: 1 << 30)
        let writer = RealtimeDataWriter(
            folder: Self.folder, budget.reservation(for: alice), memoryBytesMax: memoryBytesMax)
        var start = 0
        for size in pieces + [json.count] {
            var piece = Array(json[start..<min(json.count, start + size)])
            start += piece.count
            try writer.write(&piece)
        }
        return writer.finish()
    }

    @Test(arguments: [UInt64](1...40)) func aFileMakesAsManyFramesAsWereAnnounced(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let letters = ["a", "é", "漢", "😀", "_", "\"__proto__\""]
        var string = "\""
        while string.utf8.count < random.below(200_000) {
            string += letters[random.below(random.below(2) == 0 ? 6 : 4)]
        }
        string += "\""
        let json = Array(string.utf8)
        let data = try written(json, pieces: (0..<20).map { _ in random.below(9000) })
        guard case .file(let body) = data else { return #expect(json.isEmpty) }
        #expect(body.namesPrototype == string.contains("\"__proto__\""), "seed \(seed)")
        var framer = RealtimePieceFramer()
        var frames: [[UInt8]] = []
        var start = 0
        while start < json.count {
            let size = min(json.count - start, 1 + random.below(70_000))
            frames += framer.take(try body.file.read(Int64(start)..<Int64(start + size)))
            start += size
        }
        frames.append(framer.finish())
        #expect(frames.count == body.frameCount, "seed \(seed)")
        #expect(Array(frames.joined()) == json, "seed \(seed)")
        for frame in frames { #expect(String(validating: frame, as: UTF8.self)?.utf16.count ?? 99_999 <= 16384) }
    }

    @Test func smallAnswersMakeNoFile() throws {
        guard case .memory(let json) = try written([1, 2, 3], pieces: [], memoryBytesMax: 3) else {
            Issue.record("a file")
            return
        }
        #expect(json == [1, 2, 3])
        guard case .file = try written([1, 2, 3, 4], pieces: [], memoryBytesMax: 3) else {
            Issue.record("no file")
            return
        }
    }

    /// All listeners share one file, and none of them holds the JSON in memory.
    @Test func aLargeChangeIsWrittenOnceForAll() throws {
        let site = try AnswerSite()
        defer { site.close() }
        let string = String(repeating: "x", count: 1_000_000)
        let push = RealtimePush(.put("a", Node(.string(string))))
        let bodies: [LargeJSON] = try site.outboxes(100) { outboxes in
            for outbox in outboxes { #expect(outbox.add(push, tag: nil)) }
        } each: { outbox in
            guard case .large(let message) = outbox.first else { return nil }
            #expect(outbox.memoryBytes == 0)
            #expect(outbox.largeBytes == message.count)
            return message.body
        }
        #expect(bodies.count == 100)
        #expect(bodies.allSatisfy { $0 === bodies[0] })
        #expect(site.service.pushFiles.usedBytes == string.utf8.count + 2)
        #expect(site.service.large.memory.unread.usedBytes == 0)
    }

    /// Later changes wait for a large one, in order; and so do the messages that were sent with it.
    @Test func aLargeChangeKeepsItsOrder() throws {
        let site = try AnswerSite()
        defer { site.close() }
        let push = RealtimePush(.put("a", Node(.string(String(repeating: "x", count: 300_000)))))
        let kinds: [String] = try site.outboxes(1) { outboxes in
            #expect(outboxes[0].add(Array("first".utf8)))
            #expect(outboxes[0].add(push, tag: 7))
            #expect(outboxes[0].add(RealtimePush(.put("b", 1)), tag: nil))
            #expect(outboxes[0].add(Array("last".utf8)))
            outboxes[0].removeFirst()
        } each: { outbox in
            guard case .large(let message) = outbox.first else { return nil }
            #expect(String(decoding: message.tail, as: UTF8.self) == #","t":7}}}"#)
            outbox.removeFirst()
            guard case .push = outbox.first else { return "no push" }
            outbox.removeFirst()
            guard case .small(let string) = outbox.first else { return "no answer" }
            outbox.removeFirst()
            #expect(outbox.isEmpty && outbox.memoryBytes == 0 && outbox.largeBytes == 0)
            return String(decoding: string, as: UTF8.self)
        }
        #expect(kinds == ["last"])
        #expect(site.service.large.memory.unread.usedBytes == 0)
    }

    /// Without space for its file, all data is sent later: no change that waited reaches the client, every answer does.
    @Test func aChangeThatCannotBeWrittenIsLostWithThoseAfterIt() throws {
        let site = try AnswerSite()
        defer { site.close() }
        let rest = site.service.pushFiles.reservation(for: .server)
        rest.resize(to: Limits.realtimePushFilesBytesMax)
        let push = RealtimePush(.put("a", Node(.string(String(repeating: "x", count: 300_000)))))
        let isLost = Mutex(false)
        let left: [String] = try site.outboxes(1) { outboxes in
            outboxes[0].onLost = { isLost.withLock { $0 = true } }
            #expect(outboxes[0].add(push, tag: nil))
            #expect(outboxes[0].add(RealtimePush(.put("b", 1)), tag: nil))
            #expect(outboxes[0].add(Array("answer".utf8)))
        } each: { outbox in
            if !isLost.withLock({ $0 }) { return nil }
            guard case .small(let string) = outbox.first else { return "no answer" }
            outbox.removeFirst()
            #expect(outbox.isEmpty && outbox.memoryBytes == 0 && outbox.largeBytes == 0)
            return String(decoding: string, as: UTF8.self)
        }
        #expect(left == ["answer"])
    }

    /// Connections of an account that do not read leave capacity for those that hold little.
    @Test func waitingMessagesAreChargedToTheirClient() throws {
        let site = try AnswerSite()
        defer { site.close() }
        let unread = site.service.large.memory.unread
        let message = [UInt8](repeating: 1, count: 60_000)
        let counts = site.onLoop { loop in
            var kept: [RealtimeOutbox] = []
            for connection in 10..<2000 {
                let requester = Requester(account: 1, connection: UInt64(connection), isAdministrator: false)
                let outbox = RealtimeOutbox(.messages, for: requester, site.service, on: loop)
                while outbox.add(message) {}
                kept.append(outbox)
            }
            let full = unread.usedBytes
            let late = RealtimeOutbox(.messages, for: aliceElsewhere, site.service, on: loop)
            let isTaken = late.add([UInt8](repeating: 1, count: 20_000))
            for outbox in kept { outbox.close() }
            late.close()
            return (full, isTaken, unread.usedBytes)
        }
        #expect(counts.0 <= Limits.realtimeUnreadBytesMax)
        #expect(counts.1)
        #expect(counts.2 == 0)
    }

    @Test func jsonInAStringOfAScriptIsTheSame() {
        let json = Array(#"{"__proto__":"\"\\","a":[1,"é😀"]}"#.utf8)
        let quoted = LargeScript.quoted(Array(json[..<9])) + LargeScript.quoted(Array(json[9...]))
        var whole: [UInt8] = []
        TreeJSON.appendString(String(decoding: json, as: UTF8.self), to: &whole)
        #expect([UInt8(ascii: "\"")] + quoted + [UInt8(ascii: "\"")] == whole)
    }
}

/// A service and a loop.
private final class AnswerSite: @unchecked Sendable {
    let service: RealtimeService
    private let loop: EventLoop
    private let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 2)

    init() throws {
        loop = try EventLoop()
        try loop.start()
        service = try RealtimeService(
            RealtimeService.Configuration(), provider: MemoryStoreProvider(),
            authenticator: Authenticator(isEmulator: true, project: "p", IdentityConfiguration()), pool: pool)
    }

    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (EventLoop) -> Value) -> Value {
        let result = Mutex<Value?>(nil)
        loop.execute { [loop] in
            let value = body(loop)
            result.withLock { $0 = value }
        }
        while true {
            if let value = result.withLock({ $0 }) { return value }
            sched_yield()
        }
    }

    /// Outboxes of clients, each on a separate connection.
    /// - Parameter each: is called repeatedly until it returns a string.
    func outboxes<Value: Sendable>(
        _ count: Int, _ begin: @escaping @Sendable ([RealtimeOutbox]) -> Void,
        each: @escaping @Sendable (RealtimeOutbox) -> Value?
    ) throws -> [Value] {
        let outboxes = onLoop { [service] loop in
            let made = (0..<count).map { number in
                let requester = Requester(account: 1, connection: UInt64(number), isAdministrator: false)
                return RealtimeOutbox(.messages, for: requester, service, on: loop)
            }
            begin(made)
            return made
        }
        var found: [Value] = []
        for outbox in outboxes {
            found.append(try #require(awaited { onLoop { _ in each(outbox) } }, "it never comes"))
        }
        onLoop { _ in for outbox in outboxes { outbox.close() } }
        return found
    }

    func close() {
        loop.stopAndJoin()
        pool.stop()
        service.close()
    }
}
