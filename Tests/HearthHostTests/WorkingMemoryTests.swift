import HearthConcurrency
import HearthModel
import Synchronization
import Testing

@testable import HearthHost

@Suite("Memory of large requests in progress")
struct WorkingMemoryTests {
    private let memory = OrderedWorkingMemory(bytesMax: 100)

    private final class Shares: Sendable {
        private let shares = Mutex<[(name: String, share: WorkingShare)]>([])
        func add(_ name: String, _ share: WorkingShare) { shares.withLock { $0.append((name, share)) } }
        var names: [String] { shares.withLock { $0.map(\.name) } }
        func end(_ name: String) {
            let share = shares.withLock { shares in shares.first { $0.name == name }?.share }
            share?.end()
        }
    }

    private func client(_ connection: UInt64) -> Requester {
        Requester(account: 1, connection: connection, isAdministrator: false)
    }

    @Test("is assigned round-robin, and no request fails")
    func waiting() {
        let shares = Shares()
        for number in 0..<5 { memory.take(60, for: client(1)) { shares.add("a\(number)", $0) } }
        memory.take(60, for: client(2)) { shares.add("b", $0) }
        #expect(shares.names == ["a0"])
        #expect(memory.waitingCount == 5)
        shares.end("a0")
        shares.end("a1")
        // Now the other account: the first one has been given memory twice.
        shares.end("b")
        #expect(shares.names == ["a0", "a1", "b", "a2"])
        for number in 2..<5 { shares.end("a\(number)") }
        #expect(shares.names.count == 6)
        #expect(memory.usedBytes == 0)
    }

    @Test("lets a request that needs more than the total run alone")
    func alone() {
        let shares = Shares()
        memory.take(10, for: client(1)) { shares.add("small", $0) }
        memory.take(1_000_000, for: client(2)) { shares.add("large", $0) }
        memory.take(10, for: client(3)) { shares.add("later", $0) }
        #expect(shares.names == ["small"])
        shares.end("small")
        #expect(shares.names == ["small", "large"])
        shares.end("large")
        shares.end("large")
        #expect(shares.names == ["small", "large", "later"])
        #expect(memory.usedBytes == 10)
    }

    @Test("is estimated by the elements of a message, not by its bytes")
    func estimates() {
        let nulls =
            Array("[".utf8)
            + Array(repeating: Array("1,".utf8), count: 1000).joined()
        #expect(ParsedSize.ofJSON(nulls) > 1000 * 64)
        let string = Array(Array(repeating: Array("The tenth part ".utf8), count: 7000).joined().prefix(100_000))
        #expect(ParsedSize.ofJSON(string) < 100_200)
        // A field of 1,000 empty messages, and a string of as many bytes.
        let empty: [UInt8] = Array(Array(repeating: [0x0A, 0x00] as [UInt8], count: 1000).joined())
        #expect(ParsedSize.ofProtobuf(empty) > 1000 * 256)
        var long: [UInt8] = [0x0A, 0xA0, 0x8D, 0x06] + string
        #expect(ParsedSize.ofProtobuf(long) < 102_000)
        // No input makes it fail.
        for cut in stride(from: 0, to: long.count, by: 997) { _ = ParsedSize.ofProtobuf(Array(long[..<cut])) }
        long[1] = 0xFF
        #expect(ParsedSize.ofProtobuf(long) > 0)
    }
}
