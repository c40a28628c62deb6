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

/// What is kept of a session in the journal, for after a crash.
extension SessionTests {
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
