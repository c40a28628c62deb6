import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthStorage
import HearthWire
import Synchronization
import Testing

@testable import HearthServer

@Suite("Large requests of streams")
struct StreamRequestTests {
    private static let name = DatabaseName(project: "p", database: "(default)")

    /// A client that sends what it likes. Belongs to the loop, but for what it has received.
    private final class Client: StreamCall, @unchecked Sendable {
        let loop: EventLoop
        let format = MessageFormat.protobuf
        let identity = Identity.owner
        let requester = Requester(account: 1, connection: 1, isAdministrator: false)
        let cancellation = Cancellation()
        var onMessage: (([UInt8]) -> Void)?
        var onHalfClose: (() -> Void)?
        var onFault: ((Status) -> Void)?
        var onCancel: (() -> Void)?
        var onWritable: (() -> Void)?
        private var isPaused = false
        private var hasRoom = true
        private var held = Queue<[UInt8]>()
        private let state = Mutex<(received: [[UInt8]], end: Status?)>(([], nil))

        init(_ loop: EventLoop) { self.loop = loop }

        var received: [[UInt8]] { state.withLock { $0.received } }
        var end: Status? { state.withLock { $0.end } }
        var isFinished: Bool { end != nil }

        func send(_ message: [UInt8]) -> Bool {
            state.withLock { $0.received.append(message) }
            return hasRoom
        }

        func finish(_ status: Status) {
            state.withLock { $0.end = $0.end ?? status }
            (onMessage, onHalfClose, onFault, onCancel, onWritable) = (nil, nil, nil, nil, nil)
        }

        func pauseReading() { isPaused = true }

        func resumeReading() {
            guard isPaused else { return }
            isPaused = false
            loop.execute { [self] in
                while !isPaused, let message = held.popFirst() { onMessage?(message) }
            }
        }

        /// Sends a request, which waits here while the stream takes no more.
        func say(_ message: some WireMessage & Sendable) {
            let bytes = message.protobuf()
            loop.execute { [self] in if isPaused { held.append(bytes) } else { onMessage?(bytes) } }
        }

        func take(_ takes: Bool) {
            loop.execute { [self] in
                hasRoom = takes
                if takes { onWritable?() }
            }
        }

        /// What it sends next can't be read.
        func garble() {
            loop.execute { [self] in onFault?(.internalError("garbled")) }
        }

        func leave() {
            loop.execute { [self] in
                cancellation.cancel()
                let onCancel = onCancel
                finish(Status(.cancelled, ""))
                onCancel?()
            }
        }

        /// Waits until the loop has worked off what came before.
        func settle() async {
            await withCheckedContinuation { continuation in loop.execute { continuation.resume() } }
        }
    }

    private final class Bench {
        let loop: EventLoop
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
        let memory: ServerMemory
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let service: FirestoreService
        let client: Client

        init(_ memory: ServerMemory = ServerMemory()) throws {
            loop = try EventLoop()
            try loop.start()
            self.memory = memory
            client = Client(loop)
            service = FirestoreService(
                registry: registry, pool: pool, memory: memory, options: FirestoreService.Options(),
                authenticator: Authenticator(isEmulator: true), access: AccessControl(isEmulator: true))
            _ = try registry.database(name)
        }

        /// Jobs that the workers for large requests have begun.
        var jobs: Int { pool.statistics.short.waits.reduce(0, +) }

        func write() { loop.execute { [client, service] in _ = WriteStream(client, service) } }
        func listen() { loop.execute { [client, service] in _ = ListenStream(client, service) } }

        func stop() async {
            client.leave()
            await client.settle()
            pool.stop()
            loop.stopAndJoin()
            registry.close()
        }
    }

    private static func commit(_ document: String, _ number: Int64, bytes: Int = 0) -> WriteRequest {
        var fields = [MapValue.Field(name: "n", value: .integer(number))]
        if bytes > 0 { fields.append(MapValue.Field(name: "z", value: .bytes([UInt8](repeating: 1, count: bytes)))) }
        let message = DocumentMessage(name: "\(name.documentsRoot)/c/\(document)", fields: MapValue(fields))
        return WriteRequest(writes: [WriteMessage(update: message)], streamToken: [1])
    }

    /// All of the working memory, so that no large request is decoded.
    private func block(_ memory: ServerMemory) -> WorkingShare? {
        let taken = Mutex<WorkingShare?>(nil)
        memory.working.take(memory.working.bytesMax, for: .server) { share in taken.withLock { $0 = share } }
        return taken.withLock { $0 }
    }

    @Test("are decoded by a worker, in the order of the stream")
    func writes() async throws {
        let bench = try Bench()
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.text))
        for number in 1...9 {
            bench.client.say(Self.commit("d", Int64(number), bytes: number % 3 == 0 ? 200 << 10 : 0))
        }
        await until { bench.client.received.count == 10 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        // Three were large, and each was counted and decoded.
        #expect(bench.jobs == 6)
        let times = try bench.client.received.dropFirst().map {
            try #require(try WriteResponse(protobuf: $0).commitTime).timestamp()
        }
        #expect(times == times.sorted())
        let path = ResourcePath(["c", "d"])
        let stored = try #require(try bench.registry.database(Self.name).view().document(path))
        #expect(try FieldsCodec.decode(stored.fields)["n"] == .integer(9))
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("a commit under way is answered before the stream ends for what came behind it")
    func endsBehindAnswers() async throws {
        let bench = try Bench()
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.text))
        for number in 1...2 { bench.client.say(Self.commit("d", Int64(number), bytes: 200 << 10)) }
        bench.client.garble()
        await bench.client.settle()
        #expect(bench.client.end == nil)
        share?.end()
        await until { bench.client.end != nil }
        #expect(bench.client.received.count == 3)
        #expect(bench.client.end?.code == .internal)
        await bench.stop()
    }

    @Test("wait for memory as they came, and what comes behind them waits and is counted")
    func waiting() async throws {
        let bench = try Bench()
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.text))
        bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
        for number in 2...5 { bench.client.say(Self.commit("d", Int64(number), bytes: 50 << 10)) }
        await until { bench.memory.working.waitingCount == 1 }
        await bench.client.settle()
        #expect(bench.client.received.count == 1)
        #expect(bench.memory.received.usedBytes >= 400 << 10)
        share?.end()
        await until { bench.client.received.count == 6 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("end their stream when the client has its share of what waits, behind the answer to the commit under way")
    func refused() async throws {
        let small = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 300 << 10)
        let bench = try Bench(ServerMemory(received: small))
        let share = block(bench.memory)
        bench.write()
        bench.client.say(WriteRequest(database: Self.name.text))
        bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
        bench.client.say(Self.commit("d", 2, bytes: 110 << 10))
        await bench.client.settle()
        #expect(bench.client.end == nil)
        share?.end()
        await until { bench.client.end != nil }
        #expect(bench.client.end?.code == .resourceExhausted)
        #expect(bench.client.received.count == 2)
        await bench.stop()
        #expect(small.usedBytes == 0)
        #expect(bench.memory.working.usedBytes == 0)
    }

    @Test("leave nothing behind when their client goes while they wait")
    func cancelled() async throws {
        for listens in [false, true] {
            let bench = try Bench()
            let share = block(bench.memory)
            if listens { bench.listen() } else { bench.write() }
            if listens {
                bench.client.say(Self.documents(1))
                bench.client.say(Self.documents(2))
            } else {
                bench.client.say(WriteRequest(database: Self.name.text))
                bench.client.say(Self.commit("d", 1, bytes: 200 << 10))
                bench.client.say(Self.commit("d", 2))
            }
            await until { bench.memory.working.waitingCount == 1 }
            bench.client.leave()
            await bench.client.settle()
            share?.end()
            await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
            let path = ResourcePath(["c", "d"])
            #expect(try bench.registry.database(Self.name).view().document(path) == nil)
            await bench.stop()
        }
    }

    /// A target of 1,000 documents with long names.
    private static func documents(_ id: Int32) -> ListenRequest {
        let names = (0..<1000).map {
            "\(name.documentsRoot)/c/\(String(repeating: "x", count: 200))\($0)"
        }
        return ListenRequest(
            database: name.text, addTarget: TargetMessage(documents: .init(documents: names), targetId: id))
    }

    @Test("add and remove targets in the order of the stream")
    func listens() async throws {
        let bench = try Bench()
        bench.listen()
        bench.client.say(Self.documents(1))
        bench.client.say(ListenRequest(removeTarget: 1))
        bench.client.say(Self.documents(1))
        bench.client.say(ListenRequest(removeTarget: 1))
        func changes() throws -> [TargetChangeMessage] {
            try bench.client.received.compactMap { try ListenResponse(protobuf: $0).targetChange }
                .filter { $0.targetIds == [1] && [.add, .remove].contains($0.targetChangeType) }
        }
        try await until { try changes().count == 4 || bench.client.end != nil }
        #expect(bench.client.end == nil)
        #expect(try changes().map(\.targetChangeType) == [.add, .remove, .add, .remove])
        #expect(bench.jobs >= 4)
        await until { bench.memory.working.usedBytes == 0 && bench.memory.received.usedBytes == 0 }
        await bench.stop()
    }

    @Test("are not kept decoded while their client takes nothing")
    func stalled() async throws {
        let bench = try Bench()
        let share = block(bench.memory)
        bench.listen()
        bench.client.say(Self.documents(1))
        await until { bench.memory.working.waitingCount == 1 }
        // What it is sent now isn't taken.
        bench.client.take(false)
        bench.client.say(ListenRequest(removeTarget: 7))
        await bench.client.settle()
        share?.end()
        await until { bench.memory.working.usedBytes == 0 }
        bench.client.take(true)
        func isAdded() throws -> Bool {
            try bench.client.received.contains {
                try ListenResponse(protobuf: $0).targetChange?.targetChangeType == .current
            }
        }
        try await until { try isAdded() || bench.client.end != nil }
        #expect(bench.client.end == nil)
        await bench.stop()
        #expect(bench.memory.received.usedBytes == 0)
    }
}
