import HearthModel
import HearthNetwork
import HearthRules
import HearthStorage
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#endif

@testable import HearthServer

/// What one client may make the server hold, and what that means to others.
@Suite struct SessionLoadTests {
    private func isOK(_ answer: String) -> Bool { answer.hasSuffix(#""b":{"s":"ok","d":""}}}"#) }

    /// A client that sends writes faster than they are made isn't read any further, and nothing of it is refused.
    @Test(.timeLimit(.minutes(1))) func writesOfAConnectionThatWaitAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let (client, other) = (site.open(), site.open(connection: 2))
        defer {
            client.end()
            other.end()
        }
        _ = (client.take(1), other.take(1))
        let count = Limits.realtimeWritesInFlightMax + Limits.realtimeRequestsWaitingMax + 1
        site.withBusyWriter {
            for number in 0..<count { client.request(number, "p", #"{"p":"a/k\#(number)","d":1}"#) }
            other.request(1, "p", #"{"p":"b","d":1}"#)
            #expect(client.isPaused)
            #expect(!other.isPaused)
            #expect(site.queuedWrites == Limits.realtimeWritesInFlightMax + 1)
        }
        let answers = client.take(count)
        #expect(answers.count == count && answers.allSatisfy(isOK))
        #expect(other.take(1).allSatisfy(isOK))
        #expect(!client.isPaused)
    }

    /// What writes become when they are decoded is counted until they are answered, whatever their size.
    @Test(.timeLimit(.minutes(1)), arguments: [2, 1000]) func decodedWritesOfAllConnectionsAreBounded(elements: Int)
        throws
    {
        let memory = ServerMemory(working: WorkingMemory(bytesMax: 1 << 20))
        let site = try Site(memory)
        defer { site.close() }
        let clients = (1...10).map { site.open(connection: UInt64($0)) }
        defer { for client in clients { client.end() } }
        for client in clients { _ = client.take(1) }
        let array = "[" + Array(repeating: "1", count: elements).joined(separator: ",") + "]"
        let sizeBytes = ParsedSize.ofJSON(Array(array.utf8))
        let count = 400 / 10
        site.withBusyWriter {
            for number in 0..<count {
                for client in clients { client.request(number, "p", #"{"p":"a","d":\#(array)}"#) }
            }
            _ = clients[9].sent
            let usedBytes = memory.working.usedBytes
            #expect(usedBytes <= memory.working.bytesMax)
            let decodedBytes = site.queuedWrites * sizeBytes
            let decodedBytesMax = (1 << 20) + clients.count * Limits.realtimeUncountedRequestsBytesMax
            #expect(decodedBytes <= decodedBytesMax)
            #expect(site.queuedWrites >= 5)
        }
        for client in clients {
            let answers = client.take(count)
            #expect(answers.count == count && answers.allSatisfy(isOK))
        }
        #expect(memory.working.usedBytes == 0)
    }

    /// The queue of the writer is full at the moment at which a client goes.
    @Test(.timeLimit(.minutes(1))) func whatIsWantedAtTheEndIsTriedAgain() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        site.withBusyWriter {
            for _ in 0..<Limits.treeWriteQueueMax {
                site.namespace.database.submit(TreeWrite(changes: [], nowMilliseconds: 0)) { _ in }
            }
            client.end()
            while !site.namespace.users.isEmpty { sched_yield() }
        }
        site.write("other", 1)
        while site.queuedWrites > 0 { sched_yield() }
        site.service.runUnfinished()
        site.write("other", 2)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().isEmpty)
    }
}
