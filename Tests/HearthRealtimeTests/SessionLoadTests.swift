import HearthModel
import HearthNetwork
import HearthRules
import HearthDocuments
import HearthTree
import HearthTreeStorage
import Synchronization
import HearthTestSupport
import Testing

import Glibc

@testable import HearthHost
@testable import HearthRealtimeServer

/// The resources of the server that one client may use, and the effect on others.
@Suite struct SessionLoadTests {
    private func isOK(_ answer: String) -> Bool { answer.hasSuffix(#""b":{"s":"ok","d":""}}}"#) }

    /// The server stops reading from a client that sends writes faster than they are made, and none of its writes
    /// fails.
    @Test(.timeLimit(.minutes(Patience.minutes))) func writesOfAConnectionThatWaitAreBounded() throws {
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

    /// Decoded writes are counted until they are answered, whatever their size is.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [2, 1000]) func decodedWritesOfAllConnectionsAreBounded(
        elements: Int
    )
        throws
    {
        let memory = ServerMemory(working: WorkingMemory(largeBytesMax: 1 << 19, commonBytesMax: 1 << 19))
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

    /// What others write takes all of the memory for large requests, and more of it waits: the writes of a client, of
    /// 200 values over a socket and of 2,000 values that a worker decodes, wait for none of it.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [200, 2_000, 8_000])
    func writesDoNotWaitForLargeOnesOfOthers(elements: Int) throws {
        let memory = ServerMemory()
        let site = try Site(memory)
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let attacker = Requester(account: 7, connection: 7, isAdministrator: false)
        let large = try #require(memory.working.takeNow(.max, for: attacker))
        memory.working.take(.max, for: attacker) { $0.end() }
        #expect(memory.working.waitingCount == 1)
        let array = "[" + Array(repeating: "1", count: elements).joined(separator: ",") + "]"
        client.request(1, "p", #"{"p":"a","d":\#(array)}"#)
        #expect(client.take(1).allSatisfy(isOK))
        #expect(memory.working.waitingCount == 1)
        large.end()
        #expect(memory.working.waitingCount == 0)
    }

    /// The writer's queue is full when a client disconnects.
    @Test(.timeLimit(.minutes(Patience.minutes))) func disconnectWritesAreTriedAgain() throws {
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

    /// A client repeats a listen again and again: a replaced read counts until it has ended.
    @Test(.timeLimit(.minutes(Patience.minutes))) func listensThatAreReplacedLeaveNoReadsBehind() throws {
        let site = try Site()
        defer { site.close() }
        site.write("a", Node(children: (0..<100).map { (TreeKey("k\($0)"), 1) }))
        let (client, other) = (site.open(), site.open(connection: 2))
        defer { other.end() }
        _ = (client.take(1), other.take(1))
        let count = 30
        site.withBusyWorkers {
            for number in 0..<count {
                client.request(number, "q", #"{"p":"a","h":""}"#)
                // A listen that is replaced before the hub knows it is never read.
                site.settle()
            }
            site.settle()
            #expect(site.waitingJobs == Limits.realtimeReadsInFlightMax)
            other.request(1, "q", #"{"p":"b","h":""}"#)
            while site.waitingJobs == Limits.realtimeReadsInFlightMax { site.settle() }
        }
        #expect(other.take(2).count == 2)
        // Each is answered, and the last one has the data.
        let answers = client.take(count + 1)
        #expect(answers.count == count + 1)
        let pushes = answers.filter { $0.contains(#""a":"d""#) }
        #expect(!pushes.isEmpty)
        site.settle()
        let session = LoopBound(client.session)
        let readsInFlight: Int = site.on { session.value.readsInFlight }
        client.end()
        #expect(readsInFlight == 0)
    }

    /// Rules are changed while the workers have no capacity for a job of each listen.
    @Test(.timeLimit(.minutes(Patience.minutes))) func rulesThatChangeNothingEndNoListen() throws {
        let site = try Site(jobsMax: 20)
        defer { site.close() }
        let rules = try TreeRuleset.compile(Array(#"{"rules":{".read":true,".write":true}}"#.utf8))
        site.namespace.setRules(rules)
        let client = site.open()
        defer { client.end() }
        let count = 500
        _ = client.take(1)
        for number in 0..<count { client.request(number, "q", #"{"p":"a/k\#(number)","h":""}"#) }
        #expect(client.take(2 * count).count == 2 * count)
        site.withBusyWorkers {
            site.namespace.setRules(rules)
            while site.waitingJobs == 0 { site.settle() }
            site.settle()
            #expect(site.waitingJobs == 1)
            site.write("a/k7", 1)
        }
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a/k7","d":1}}}"#])
        site.write("a/k8", 1)
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a/k8","d":1}}}"#])
        site.namespace.setRules(try TreeRuleset.compile(Array(#"{"rules":{"a":{"k1":{".read":true}}}}"#.utf8)))
        let revoked = client.take(count - 1)
        #expect(revoked.count == count - 1)
        let others = revoked.filter { !$0.contains(#""a":"c""#) || $0.contains(#""a/k1""#) }
        #expect(others.isEmpty)
    }

    /// Rules change while a listen is read, and the client disconnects between its data and the check of its rights.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aSessionMayEndBeforeItsListensAreChecked() throws {
        let site = try Site()
        defer { site.close() }
        let (namespace, service, loop) = (site.namespace, site.service, site.loop)
        let line = Line(loop, connection: 1)
        let ghost = LoopBound(Ghost())
        try site.withBusyWorkers {
            site.on {
                let session = RealtimeSession(line, host: "localhost:9000", namespace, service)
                session.receive(Array(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"a","h":""}}}"#.utf8))
                ghost.value.session = session
                ghost.value.last = session
                line.onSend = {
                    line.onSend = nil
                    loop.execute {
                        ghost.value.last?.carrierEnded()
                        ghost.value.last = nil
                    }
                }
            }
            while site.waitingJobs == 0 { site.settle() }
            namespace.setRules(try TreeRuleset.compile(Array(#"{"rules":{".read":true}}"#.utf8)))
            site.settle()
        }
        while site.on({ ghost.value.session != nil }) { sched_yield() }
        #expect(namespace.users.isEmpty && !namespace.hub.isUsed)
    }
}

/// A session that is referenced only by its own jobs.
private final class Ghost {
    weak var session: RealtimeSession?
    /// The resources of its connection.
    var last: RealtimeSession?
}
