@testable import HearthConcurrency
@testable import HearthHost
@testable import HearthRealtimeServer
import HearthModel
import HearthNetwork
import HearthRules
import HearthDocuments
import HearthTestDoubles
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

import Glibc

@testable import HearthServer

@Suite struct SessionTests {
    private let ok = #""b":{"s":"ok","d":""}}}"#

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

    /// A listen whose data cannot be stored ends the connection, and the client may reconnect; a get answers with the
    /// error.
    @Test func withoutSpaceForFilesClientsAreDisconnected() throws {
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
        #expect(awaited { client.fault } == .busy)
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
        try site.namespace.runAbandoned(site.service, waitMilliseconds: 60_000)
        let view = try database.view()
        defer { view.close() }
        #expect(try view.children(of: "left", limit: 100).count == 20)
        #expect(try view.journal().isEmpty)
    }

    /// Disconnect writes use the client's identity at the end: the journal contains it before the client is notified.
    @Test func theJournalContainsTheIdentity() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        func kept() throws -> RealtimeIdentity {
            let view = try site.namespace.database.view()
            defer { view.close() }
            return try DisconnectRecord(try #require(try view.journal().first)).identity
        }
        site.on { [session = client.session] in
            session.change(to: .client(auth: .object([("uid", .string("ann"))]), end: nil))
        }
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        #expect(try kept().auth?["uid"]?.string == "ann")
        client.request(2, "unauth", "{}")
        #expect(client.take(1) == [#"{"t":"d","d":{"r":2,"b":{"s":"ok","d":""}}}"#])
        #expect(try kept().auth == nil && kept().scope == nil)
        client.request(3, "gauth", #"{"cred":"owner"}"#)
        #expect(client.take(1)[0].hasPrefix(#"{"t":"d","d":{"r":3,"b":{"s":"ok""#))
        #expect(try kept().scope != nil)
        // The journal has no identity without a disconnect write.
        client.request(4, "oc", #"{"p":"left","d":null}"#)
        client.request(5, "unauth", "{}")
        #expect(client.take(2).count == 2)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.journal().isEmpty)
    }

    /// An expired token is like `unauth`: when the client is notified, the journal is already changed.
    @Test func theJournalRecordsTheTokensExpiryFirst() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        site.on { [session = client.session] in
            session.change(to: .client(auth: .object([("uid", .string("ann"))]), end: nil))
        }
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        site.withBusyWriter {
            site.on { [session = client.session] in
                let end = TokenEnd(seconds: 0, proof: nil, clock: SystemClock())
                session.change(to: .client(auth: .object([("uid", .string("ann"))]), end: end))
            }
            while site.on({ [session = client.session] in session.identity.auth != nil }) { sched_yield() }
            #expect(client.sent.isEmpty)
        }
        #expect(client.take(1)[0].contains("expired_token"))
        let view = try site.namespace.database.view()
        defer { view.close() }
        let record = try DisconnectRecord(try #require(try view.journal().first))
        #expect(record.identity.auth == nil)
    }

    /// A disk that is full for a moment does not change anyone's rights.
    @Test func theIdentityIsWrittenToTheJournalAgain() throws {
        let store = FaultyStore()
        let site = try Site(stores: OneStore(store))
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        site.on { [session = client.session] in
            session.change(to: .client(auth: .object([("uid", .string("ann"))]), end: nil))
        }
        client.request(1, "o", #"{"p":"left","d":1}"#)
        client.request(2, "o", #"{"p":"other","d":1}"#)
        _ = client.take(3)
        func auth() throws -> JSONValue? {
            let view = try site.namespace.database.view()
            defer { view.close() }
            let journal = try view.journal()
            #expect(try DisconnectRecord(try #require(journal.first)).changes.count == 2)
            return try DisconnectRecord(try #require(journal.first)).identity.auth
        }
        store.fail(at: 0)
        client.request(3, "unauth", "{}")
        #expect(client.take(1) == [#"{"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#])
        #expect(try auth() != nil)
        #expect(try awaited { try auth() == nil ? true : nil } == true)
    }

    /// A disconnect write that the journal could not store fails, and isn't made: neither at the end nor after a crash.
    @Test(arguments: [false, true])
    func aFailedDisconnectWriteIsUndone(isCrash: Bool) throws {
        let store = FaultyStore()
        let site = try Site(stores: OneStore(store))
        defer { site.close() }
        let client = site.open()
        _ = client.take(1)
        client.request(1, "o", #"{"p":"kept","d":{"a":1,"b":1}}"#)
        client.request(2, "o", #"{"p":"cancelled","d":1}"#)
        #expect(client.take(2).allSatisfy { $0.hasSuffix(ok) })
        let refused = [
            ("o", #"{"p":"kept","d":2}"#), ("o", #"{"p":"kept/a","d":2}"#), ("o", #"{"p":"new","d":2}"#),
            ("om", #"{"p":"kept","d":{"b":2,"c":2}}"#), ("oc", #"{"p":"cancelled","d":null}"#),
            ("oc", #"{"p":"kept/a","d":null}"#),
        ]
        for (number, (action, body)) in refused.enumerated() {
            store.fail(at: 0)
            client.request(10 + number, action, body)
            #expect(!client.take(1)[0].hasSuffix(ok))
        }
        store.fail(at: nil)
        client.request(20, "o", #"{"p":"later","d":1}"#)
        #expect(client.take(1)[0].hasSuffix(ok))
        if isCrash {
            try site.namespace.runAbandoned(site.service)
            site.write("other", 1)
        } else {
            client.end()
            while !site.namespace.users.isEmpty { sched_yield() }
        }
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "kept") == inner(["a": 1, "b": 1]))
        #expect(try view.node(at: "cancelled") == 1 && view.node(at: "later") == 1)
        #expect(try view.node(at: "new").isEmpty)
        #expect(try view.journal().isEmpty)
    }

    /// Disconnect writes behind one that fails are merged into the rest.
    @Test func disconnectWritesBehindAFailedOneRemain() throws {
        let store = FaultyStore()
        let site = try Site(stores: OneStore(store))
        defer { site.close() }
        let client = site.open()
        _ = client.take(1)
        client.request(1, "o", #"{"p":"kept","d":{"a":1}}"#)
        #expect(client.take(1)[0].hasSuffix(ok))
        site.withBusyWriter {
            client.request(2, "o", #"{"p":"kept/c","d":2}"#)
            client.request(3, "o", #"{"p":"kept/b","d":3}"#)
            client.request(4, "oc", #"{"p":"kept/a","d":null}"#)
            store.fail(at: 0)
        }
        let answers = client.take(3)
        #expect(!answers[0].hasSuffix(ok) && answers[1].hasSuffix(ok) && answers[2].hasSuffix(ok))
        client.end()
        while !site.namespace.users.isEmpty { sched_yield() }
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "kept") == inner(["b": 3]))
    }

    /// The journal follows each change of the disconnect writes.
    @Test func theJournalContainsTheDisconnectWrites() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        var writes = DisconnectWrites()
        for number in 1...60 {
            let path = ["a", "a/b", "a/b/c", "d", "d/e"].randomElement()!
            switch number % 5 {
            case 0:
                client.request(number, "oc", #"{"p":"\#(path)","d":null}"#)
                writes.cancel(TreePath(path))
            case 1:
                client.request(number, "om", #"{"p":"\#(path)","d":{"x":\#(number),"y/z":null}}"#)
                let location = TreePath(path)
                writes.merge([
                    TreeChange(path: location + "x", node: Node(.integer(Int64(number)))),
                    TreeChange(path: location + "y/z", node: .empty),
                ])
            default:
                client.request(number, "o", #"{"p":"\#(path)","d":{"k":\#(number)}}"#)
                writes.put(TreePath(path), inner(["k": Node(.integer(Int64(number)))]))
            }
            if number % 3 == 0 { continue }
            let answers = client.take(number % 3 == 1 && number > 1 ? 2 : 1)
            try #require(answers.allSatisfy { $0.hasSuffix(ok) }, "\(answers), \(String(describing: client.fault))")
            let view = try site.namespace.database.view()
            defer { view.close() }
            let kept = try view.journal()
            #expect(try kept.first.map { try DisconnectRecord($0).changes } ?? [] == writes.changes)
        }
    }

    @Test func aDamagedJournalEntryBlocksNoOther() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        let isDone = Mutex(false)
        site.namespace.database.submit(
            TreeWrite(
                changes: [], nowMilliseconds: 0,
                journal: [JournalChange(session: "0", entry: "identity", record: Array("nonsense".utf8))])
        ) { _ in isDone.withLock { $0 = true } }
        while !isDone.withLock({ $0 }) { sched_yield() }
        try site.namespace.runAbandoned(site.service)
        site.write("other", 1)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().map(\.session) == ["0"])
    }

    @Test func nothingRemainsOfASession() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "q", #"{"p":"a","h":""}"#)
        client.request(2, "o", #"{"p":"left","d":1}"#)
        _ = client.take(4)
        #expect(site.namespace.users.count == 1 && site.namespace.hub.isUsed)
        client.end()
        while !site.namespace.users.isEmpty { sched_yield() }
        #expect(!site.namespace.hub.isUsed)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().isEmpty)
    }
}
