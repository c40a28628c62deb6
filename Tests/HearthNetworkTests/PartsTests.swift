import HearthConcurrency
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthNetwork

@Suite struct PartsTests {
    @Test(arguments: 0...24)
    func detectsHTTP2OnlyWhenItIsSure(count: Int) {
        let bytes = Array(ProtocolDetector.http2Preface.prefix(count))
        let verdict = bytes.withUnsafeBytes { ProtocolDetector.detect($0) }
        #expect(verdict == (count == 24 ? .http2 : .needsMore))
        guard count < 24 else { return }
        let other = bytes + [UInt8(ascii: "~")]
        #expect(other.withUnsafeBytes { ProtocolDetector.detect($0) } == .http1)
    }

    @Test func detectsTLS() { #expect([UInt8(0x16)].withUnsafeBytes { ProtocolDetector.detect($0) } == .tls) }

    @Test func rateLimiterAllowsABurstAndARate() {
        var limiter = RateLimiter(burstMax: 10, perSecondMax: 5, now: 0)
        let admitted = (0..<20).filter { _ in limiter.admit(now: 0) }
        #expect(admitted.count == 10)
        var later = RateLimiter(burstMax: 10, perSecondMax: 5, now: 0)
        let evenly = (0..<500).filter { later.admit(now: UInt64($0 / 5) * 1_000_000_000) }
        #expect(evenly.count == 500)
        var credited = RateLimiter(burstMax: 1, perSecondMax: 0, now: 0)
        let balanced = (0..<100).filter { _ in
            defer { credited.credit() }
            return credited.admit(now: 0)
        }
        #expect(balanced.count == 100)
    }

    @Test func bodyProgressRequiresBytesInTime() {
        var limits = NetworkLimits()
        limits.bodyProgressMilliseconds = 1
        limits.bodyProgressBytesMin = 100
        var progress = BodyProgress(now: 0)
        progress.received(99, now: 900_000, limits: limits)
        #expect(!progress.isTooSlow(now: 1_000_000, limits: limits))
        #expect(progress.isTooSlow(now: 1_000_001, limits: limits))
        progress.received(1, now: 1_000_000, limits: limits)
        #expect(!progress.isTooSlow(now: 2_000_000, limits: limits))
    }

    @Test(arguments: [1, 2, 3, 5, 6, 100, 10_000])
    func outputQueueKeepsTheOrder(step: Int) throws {
        var queue = OutputQueue()
        var expected: [UInt8] = []
        for number in 0..<300 {
            let bytes = Array(repeating: UInt8(truncatingIfNeeded: number), count: number % 17)
            let prefix = number % 3 == 0 ? GRPCPrefix(isCompressed: false, messageBytes: bytes.count) : nil
            prefix?.withBytes { expected += $0 }
            expected += bytes
            queue.append(bytes, prefix: prefix)
        }
        #expect(queue.count == expected.count)
        let scratch = OutputScratch(capacity: 20_000)
        while !queue.isEmpty { try queue.move(min(step, queue.count), into: scratch) }
        #expect(Array(scratch.bytes) == expected)
    }

    @Test func heldInputIsCountedInSteps() {
        let budget = MemoryBudget(bytesMax: 100 << 10, clientsBytesMax: 100 << 10, shareBytesMax: 100 << 10)
        let input = HeldInput(budget, address: "192.0.2.1:5", connection: 7)
        // Requests in one piece need no lock.
        #expect(input.take(HeldInput.freeBytes))
        #expect(budget.usedBytes == 0)
        #expect(input.take(30 << 10))
        #expect(budget.usedBytes >= 30 << 10)
        // Clients leave a reserve for others, but an administrator may use all of it.
        #expect(!input.take(40 << 10))
        input.identified(.administrator(connection: 7))
        #expect(input.take(40 << 10))
        #expect(!input.take(40 << 10))
        input.give(input.bytes)
        #expect(budget.usedBytes == 0)
    }

    @Test func waitingAnswersFreeMemoryForOtherUses() throws {
        let pool = MemoryPool(bytesMax: 64 << 20)
        var configuration = ServerConfiguration(host: "127.0.0.1", loopCount: 2)
        configuration.pool = pool
        let context = LoopContext(
            loop: try EventLoop(index: 98), loopCount: 2, configuration: configuration, tls: nil,
            inputBudget: MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 1 << 20),
            http: ClosureHTTPHandler { _ in }, grpc: ClosureGRPCHandler { _ in })
        let limits = configuration.limits
        context.countWaitingAnswers(20 << 20)
        #expect(!context.hasTooManyAnswers && context.answerHighWaterBytes == limits.answerHighWaterBytes)
        #expect(pool.usedBytes >= (20 << 20) - Limits.answersOwnBytes / 2)
        // An administrator is not limited by the memory that clients hold.
        let others = MemoryBudget(bytesMax: 1 << 30, shareBytesMax: 1, loan: MemoryLoan(pool, ownBytes: 0))
        let held = others.reservation(for: .administrator(connection: 1))
        while held.grow(by: 1 << 20) {}
        #expect(pool.usedBytes <= pool.bytesMax)
        #expect(context.hasTooManyAnswers && context.answerHighWaterBytes == limits.answerLowWaterBytes)
        // The own part is always available.
        context.countWaitingAnswers(Limits.answersOwnBytes / 2 - (20 << 20))
        #expect(!context.hasTooManyAnswers)
        context.countWaitingAnswers(-context.waitingAnswerBytes)
        held.resize(to: 0)
        #expect(pool.usedBytes == 0)
    }

    @Test(arguments: [1, 20, 1000]) func openRequestsAreBoundedAndLeaveMemoryForOthers(connections: Int) throws {
        let pool = MemoryPool(bytesMax: 32 << 20)
        var configuration = ServerConfiguration(host: "127.0.0.1", loopCount: 1)
        configuration.pool = pool
        let context = LoopContext(
            loop: try EventLoop(index: 97), loopCount: 1, configuration: configuration, tls: nil,
            inputBudget: MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 1 << 20),
            http: ClosureHTTPHandler { _ in }, grpc: ClosureGRPCHandler { _ in })
        // A request of usual size is not counted.
        var usual = HeldRequests(context)
        let isUsualHeld = usual.set(HeldRequests.freeBytes)
        #expect(isUsualHeld && context.openRequests.usedBytes == 0)
        var held = (0..<connections).map { _ in (requests: HeldRequests(context), bytes: 0) }
        for _ in 0..<256 {
            for number in held.indices where held[number].requests.set(held[number].bytes + 66_000) {
                held[number].bytes += 66_000
            }
        }
        #expect(context.openRequests.usedBytes == held.reduce(0) { $0 + $1.bytes })
        #expect(context.openRequests.usedBytes <= Limits.openRequestsOwnBytes + pool.bytesMax)
        let isMoreHeld = usual.set(16 << 10)
        #expect(isMoreHeld)
        // A rejected reservation changes nothing, and decreasing always succeeds.
        for number in held.indices {
            let isMuchHeld = held[number].requests.set(held[number].bytes + (32 << 20))
            let isLessHeld = held[number].requests.set(held[number].bytes / 2)
            #expect(!isMuchHeld && isLessHeld)
        }
        for number in held.indices { _ = held[number].requests.set(0) }
        _ = usual.set(0)
        #expect(context.openRequests.usedBytes == 0 && pool.usedBytes == 0)
    }

    @Test func formatsDates() { #expect(HTTPDate.format(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT") }

    @Test func headerBlockFindsItsFields() {
        let buffer = FieldBuffer()
        let long = String(repeating: "x", count: 5_000)
        for (name, value) in [(":path", "/"), ("a", "1"), ("ab", "2"), ("a", "3"), ("empty", ""), ("long", long)] {
            Array(name.utf8).withUnsafeBufferPointer { name in
                Array(value.utf8).withUnsafeBufferPointer { buffer.append(name: name, value: $0) }
            }
        }
        let saved = [UInt8](buffer.bytes)
        buffer.reset()
        buffer.restore(saved, count: 6)
        let block = HeaderBlock(buffer)
        #expect(block.firstValue("a") == "1")
        #expect(block.firstValue("ab") == "2")
        #expect(block.firstValue("empty") == "")
        #expect(block.firstValue("b") == nil)
        #expect(block.headers.map(\.value) == ["1", "2", "3", "", long])
    }
}

@Suite struct EventLoopTests {
    @Test func jobsRunInOrderOnTheLoop() async {
        let order = Mutex([Int]())
        let isOn = Mutex(true)
        for number in 0..<1_000 {
            clientLoop.execute {
                order.withLock { $0.append(number) }
                if !clientLoop.isCurrent || EventLoop.current !== clientLoop { isOn.withLock { $0 = false } }
            }
        }
        _ = await onClientLoop { true }
        #expect(order.withLock { $0 } == Array(0..<1_000))
        #expect(isOn.withLock { $0 })
        #expect(!clientLoop.isCurrent)
        #expect(EventLoop.current == nil)
    }

    @Test func timersRunInTheOrderOfTheirTimes() async throws {
        let order = Mutex([Int]())
        let done = Box<Bool>()
        // Set within one job, so that the clock cannot overtake them.
        clientLoop.execute {
            for milliseconds in [30, 10, 20, 0, 40] {
                clientLoop.schedule(afterMilliseconds: milliseconds) {
                    order.withLock { $0.append(milliseconds) }
                    if milliseconds == 40 { done.set(true) }
                }
            }
            clientLoop.schedule(afterMilliseconds: 15) { order.withLock { $0.append(-1) } }.cancel()
        }
        _ = try await done.value()
        #expect(order.withLock { $0 } == [0, 10, 20, 30, 40])
    }

    @Test func aStoppedLoopDropsItsJobs() throws {
        let loop = try EventLoop()
        try loop.start()
        loop.stopAndJoin()
        loop.execute { Issue.record("ran after the end") }
        #expect(!loop.isCurrent)
    }
}
