@testable import HearthConcurrency
@testable import HearthHost
@testable import HearthRealtimeServer
import HearthModel
import HearthNetwork
import HearthRules
import HearthDocuments
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

import Glibc

@testable import HearthServer

@Suite struct SessionTests {
    let ok = #""b":{"s":"ok","d":""}}}"#

    /// A session with each kind of message.
    @Test func theExampleSession() throws {
        let site = try Site()
        defer { site.close() }
        site.namespace.setRules(
            try TreeRuleset.compile(
                Array(#"{"rules":{".read":true,"admin":{".write":false},"$other":{".write":true}}}"#.utf8)))
        site.write("counter", 10)
        site.write(
            "scores", inner(["ann": inner(["points": 7]), "bob": inner(["points": 9]), "abe": inner(["points": 1])]))
        let client = site.open()
        defer { client.end() }
        let handshake = client.take(1)[0]
        #expect(handshake.hasPrefix(#"{"t":"c","d":{"t":"h","d":{"ts":"#))
        #expect(handshake.contains(#","v":"5","h":"localhost:9000","s":""#))
        client.sendRaw(
            #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.11-0-0":1}}}}"#,
            #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/counter","h":""}}}"#)
        #expect(
            client.take(3) == [
                #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#,
                #"{"t":"d","d":{"a":"d","b":{"p":"counter","d":10}}}"#,
                #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#,
            ])
        client.sendRaw(#"{"t":"c","d":{"t":"p","d":{}}}"#)
        #expect(client.take(1) == [#"{"t":"c","d":{"t":"o","d":null}}"#])
        client.sendRaw(
            #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/counter","d":11,"h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"a":"d","b":{"p":"counter","d":11}}}"#,
                #"{"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#,
            ])
        client.sendRaw(
            #"{"t":"d","d":{"r":4,"a":"q","b":{"p":"/scores","q":{"l":2,"vf":"r","i":"points"},"t":1,"h":""}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"a":"d","b":{"p":"scores","d":{"ann":{"points":7},"bob":{"points":9}},"t":1}}}"#,
                #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"w":["no_index"]}}}}"#,
            ])
        site.write("scores/cy", inner(["points": 8]))
        #expect(
            client.take(1) == [
                #"{"t":"d","d":{"a":"m","b":{"p":"scores","d":{"ann":null,"cy":{"points":8}},"t":1}}}"#
            ])
        client.sendRaw(
            #"{"t":"d","d":{"r":5,"a":"n","b":{"p":"/scores","q":{"l":2,"vf":"r","i":"points"},"t":1}}}"#,
            #"{"t":"d","d":{"r":6,"a":"p","b":{"p":"/admin","d":true}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"r":5,"b":{"s":"ok","d":""}}}"#,
                #"{"t":"d","d":{"r":6,"b":{"s":"permission_denied","d":"Permission denied"}}}"#,
            ])
    }

    /// However many large answers a client requests at once, each is made only when the client has read the one before.
    /// All of them arrive in order, and no file remains.
    @Test func largeAnswersAreMadeOneAtATime() throws {
        let site = try Site()
        defer { site.close() }
        let string = String(repeating: "x", count: 300_000)
        site.write("big", Node(.string(string)))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.block()
        for number in 1...6 { client.request(number, "g", #"{"p":"/big"}"#) }
        client.request(7, "q", #"{"p":"/big","h":""}"#)
        let answer = { (number: Int) in #"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":"\#(string)"}}}"# }
        for number in 1...6 {
            #expect(client.take(1) == [answer(number)])
            #expect(site.holds(string.utf8.count + 2))
            #expect(client.sent.isEmpty)
            client.takeLarge()
        }
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"a":"d","b":{"p":"big","d":"\#(string)"}}}"#,
                #"{"t":"d","d":{"r":7,"b":{"s":"ok","d":{}}}}"#,
            ])
        client.takeLarge()
        #expect(site.holds(0))
        #expect(client.fault == nil)
    }

    /// A listen or a get whose data cannot be stored answers with the error, and the connection continues.
    @Test func withoutSpaceForFilesRequestsFailAlone() throws {
        let site = try Site()
        defer { site.close() }
        site.write("big", Node(.string(String(repeating: "x", count: 300_000))))
        let rest = site.service.spools.reservation(for: .server)
        rest.resize(to: Limits.realtimeSpoolBytesMax)
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.request(1, "g", #"{"p":"/big"}"#)
        #expect(client.take(1)[0].hasPrefix(#"{"t":"d","d":{"r":1,"b":{"s":"unavailable""#))
        client.request(2, "g", #"{"p":"/small"}"#)
        #expect(client.take(1) == [#"{"t":"d","d":{"r":2,"b":{"s":"ok","d":null}}}"#])
        client.request(3, "q", #"{"p":"/big","h":""}"#)
        #expect(client.take(1).first?.hasPrefix(#"{"t":"d","d":{"r":3,"b":{"s":"unavailable""#) == true)
        client.request(4, "g", #"{"p":"/small"}"#)
        #expect(client.take(1) == [#"{"t":"d","d":{"r":4,"b":{"s":"ok","d":null}}}"#])
        #expect(client.fault == nil)
    }

    /// Of large data only the differing parts are sent.
    @Test func aCompoundHashGetsTheRangesThatDiffer() throws {
        let site = try Site()
        defer { site.close() }
        let old = Node(
            children: (0..<200).map { (TreeKey("key\($0)"), Node(.string(String(repeating: "x", count: 30)))) })
        let new = old.setting(TreeKey("key77"), to: "other")
        site.write("big", new)
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        var wire: [UInt8] = []
        TreeJSON.append(CompoundHash(of: old).wire, to: &wire)
        let compound = String(decoding: wire, as: UTF8.self)
        client.request(1, "q", #"{"p":"big","h":"\#(old.hash)","ch":\#(compound)}"#)
        let sent = client.take(2)
        #expect(sent.last == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#)
        let head = #"{"t":"d","d":{"a":"rm","b":{"p":"big","d":["#
        try #require(sent[0].hasPrefix(head) && sent[0].hasSuffix("]}}}"))
        let list = Array(sent[0].utf8)
        #expect(list.count < 2000)
        let range = try TreeRange(list, in: head.utf8.count..<(list.count - 4))
        #expect(range.applied(to: old) == new)
        client.request(2, "q", #"{"p":"big","h":"\#(new.hash)","ch":\#(compound)}"#)
        #expect(client.take(1) == [#"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#])
    }

    /// A client that does not read receives no changes and no answers; later it receives all data, then the answers.
    @Test func aClientWithoutCapacityReceivesAllDataLater() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.request(1, "q", #"{"p":"a","h":""}"#)
        client.request(2, "q", #"{"p":"a","q":{"i":".key","l":1,"vf":"l"},"t":4,"h":""}"#)
        _ = client.take(5)
        client.request(3, "p", #"{"p":"a/b","d":1}"#)
        _ = client.take(3)
        client.fill()
        for value in 2..<10 { site.write("a/b", Node(.integer(Int64(value)))) }
        client.request(4, "g", #"{"p":"a","q":{}}"#)
        site.write("a/a", 1)
        #expect(client.sent == [])
        client.drain()
        let sent = client.take(3)
        #expect(sent.last == #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"a":1,"b":9}}}}"#)
        #expect(
            sent.dropLast().sorted() == [
                #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"a":1,"b":9}}}}"#,
                #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"a":1},"t":4}}}"#,
            ])
        site.write("a/c", 2)
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a/c","d":2}}}"#])
    }

    /// A socket reports that it has sent data only when it holds more than its threshold. With less waiting, no further
    /// event would trigger sending all data.
    @Test(arguments: [0, 64 << 10 + 1, Limits.realtimeSocketHighWaterBytes - 1])
    func lackingDataIsSentBelowTheSocketsThreshold(queuedBytes: Int) throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.request(1, "q", #"{"p":"a","h":""}"#)
        _ = client.take(3)
        client.fill()
        for value in 2..<4 { site.write("a/b", Node(.integer(Int64(value)))) }
        client.request(2, "g", #"{"p":"a","q":{}}"#)
        site.settle()
        let (line, session) = (LoopBound(client.line), LoopBound(client.session))
        site.on {
            line.value.queuedBytes = queuedBytes
            session.value.becameWritable()
        }
        let sent = [
            #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"b":3}}}}"#,
            #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{"b":3}}}}"#,
        ]
        #expect(client.take(2) == sent)
    }

    /// A listen waits for changes that are lost: it must not wait any longer.
    @Test func listensThatWaitForLargeChangesContinueWhenTheyAreLost() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.request(1, "q", #"{"p":"a","h":""}"#)
        _ = client.take(3)
        client.fill()
        site.write("a/b", 2)
        site.settle()
        let (line, session) = (LoopBound(client.line), LoopBound(client.session))
        site.on {
            line.value.queuedBytes = 0
            session.value.lostPushes()
        }
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"b":2}}}}"#])
    }

    @Test func requestsThatWaitAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.fill()
        for number in 0...Limits.realtimeRequestsWaitingMax { client.request(number, "s", "{}") }
        #expect(client.isPaused)
        #expect(client.sent == [])
        client.drain()
        #expect(client.take(Limits.realtimeRequestsWaitingMax + 1).count == Limits.realtimeRequestsWaitingMax + 1)
        #expect(!client.isPaused)
    }

    @Test func listensOfAConnectionAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        for number in 0..<Limits.realtimeListensMax { client.request(number, "q", #"{"p":"a/k\#(number)","h":""}"#) }
        #expect(client.take(2 * Limits.realtimeListensMax).count == 2 * Limits.realtimeListensMax)
        client.request(99999, "q", #"{"p":"b","h":""}"#)
        #expect(client.take(1)[0].hasPrefix(#"{"t":"d","d":{"r":99999,"b":{"s":"too_big""#))
        client.request(100_000, "n", #"{"p":"a/k1"}"#)
        client.request(100_001, "q", #"{"p":"b","h":""}"#)
        #expect(client.take(3).last == #"{"t":"d","d":{"r":100001,"b":{"s":"ok","d":{}}}}"#)
    }

    @Test func anInvalidMessageEndsTheConnection() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.sendRaw("nonsense")
        #expect(client.fault?.kind == .malformed)
    }

    /// Disconnect writes that a crash has left are made before the first client is served.
    @Test func whatACrashLeftIsDone() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":{".sv":"timestamp"}}"#)
        client.request(2, "o", #"{"p":"count","d":{".sv":{"increment":2}}}"#)
        _ = client.take(3)
        site.write("count", 5)
        // As after a crash: the session is not ended, and its namespace is opened again.
        try site.namespace.runAbandoned(site.service)
        site.write("other", 1)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "count") == 7)
        #expect(try view.value(at: "left")?.number ?? 0 > 1_600_000_000_000)
        #expect(try view.journal().isEmpty)
    }

    /// The first reader after a crash also sees the disconnect writes, however busy the writer is.
    @Test func disconnectWritesOfACrashPrecedeTheFirstRead() throws {
        let site = try Site()
        defer { site.close() }
        let clients = (0..<20).map { site.open(connection: UInt64(1 + $0)) }
        for (number, client) in clients.enumerated() {
            client.request(1, "o", #"{"p":"left/k\#(number)","d":1}"#)
            _ = client.take(2)
        }
        let database = site.namespace.database
        let isBusy = Mutex(false)
        database.perform { _ in
            isBusy.withLock { $0 = true }
            while database.statistics.queuedWrites < 20 { sched_yield() }
            for _ in 0..<20 { sched_yield() }
        }
        // Writes before this one may be taken from the queue with it, and never count as waiting.
        while !isBusy.withLock({ $0 }) { sched_yield() }
        try site.namespace.runAbandoned(site.service, waitMilliseconds: Patience.milliseconds)
        let view = try database.view()
        defer { view.close() }
        #expect(try view.children(of: "left", limit: 100).count == 20)
        #expect(try view.journal().isEmpty)
    }
}
