import HearthModel
import HearthRules
import HearthTree
import HearthTreeStorage
import Synchronization
import HearthTestSupport
import Testing

import Glibc

@testable import HearthRealtimeServer

/// Events during the read of a listen.
@Suite struct ListenRightsTests {
    /// Lets the only worker for brief reads finish its reads, and then runs `body` on the loop before the results
    /// arrive.
    private func afterReading(_ site: Site, _ begin: () -> Void, _ body: @escaping @Sendable () -> Void) {
        let isBegun = Mutex(false)
        site.withBusyWorkers([.brief]) {
            begin()
            while site.waitingJobs == 0 { site.settle() }
            let pool = site.pool
            site.loop.execute {
                let isRead = Mutex(false)
                pool.run(.brief, for: .server, refused: { _ in }) { isRead.withLock { $0 = true } }
                isBegun.withLock { $0 = true }
                while !isRead.withLock({ $0 }) { sched_yield() }
                body()
            }
            while !isBegun.withLock({ $0 }) { sched_yield() }
        }
    }

    /// Neither data that was read with former rights is sent, nor later changes.
    @Test(.timeLimit(.minutes(Patience.minutes))) func dataReadWithFormerRightsIsNotSent() throws {
        let site = try Site()
        defer { site.close() }
        site.write("a", 1)
        site.namespace.setRules(try TreeRuleset.compile(Array(#"{"rules":{".read":true}}"#.utf8)))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let shut = try TreeRuleset.compile(Array(#"{"rules":{".read":false}}"#.utf8))
        let (namespace, session) = (site.namespace, LoopBound(client.session))
        afterReading(site) {
            client.request(1, "q", #"{"p":"a","h":""}"#)
        } _: {
            namespace.setRules(shut)
            session.value.rulesChanged()
        }
        site.write("a", 2)
        let denied = #"{"t":"d","d":{"r":1,"b":{"s":"permission_denied","d":"Permission denied"}}}"#
        #expect(client.take(1) == [denied])
        site.settle()
        #expect(client.sent.isEmpty)
    }

    /// The request behind the listen is begun as soon as the listen is answered, and may end its rights.
    @Test(.timeLimit(.minutes(Patience.minutes))) func rightsThatEndWithTheAnswerEndTheListen() throws {
        let site = try Site()
        defer { site.close() }
        site.write("a", 1)
        site.namespace.setRules(try TreeRuleset.compile(Array(#"{"rules":{".read":"auth == null"}}"#.utf8)))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let (session, line) = (LoopBound(client.session), LoopBound(client.line))
        site.on {
            line.value.onSend = {
                if line.value.sent.last?.contains(#""r":1"#) != true { return }
                line.value.onSend = nil
                session.value.change(to: .client(auth: .object([("uid", .string("somebody"))]), end: nil))
            }
        }
        client.request(1, "q", #"{"p":"a","h":""}"#)
        while client.sent.count < 2 { sched_yield() }
        site.write("a", 2)
        let sent = [
            #"{"t":"d","d":{"a":"d","b":{"p":"a","d":1}}}"#, #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#,
            #"{"t":"d","d":{"a":"c","b":{"p":"a"}}}"#,
        ]
        #expect(client.take(3) == sent)
    }

    /// Rights that have changed and still exist: the client receives all data once.
    @Test(.timeLimit(.minutes(Patience.minutes))) func dataThatMayStillBeReadIsReadAgain() throws {
        let site = try Site()
        defer { site.close() }
        site.write("a", 1)
        let rules = try TreeRuleset.compile(Array(#"{"rules":{".read":true}}"#.utf8))
        site.namespace.setRules(rules)
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let session = LoopBound(client.session)
        afterReading(site) {
            client.request(1, "q", #"{"p":"a","h":""}"#)
        } _: {
            session.value.rulesChanged()
        }
        let data = [
            #"{"t":"d","d":{"a":"d","b":{"p":"a","d":1}}}"#, #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#,
        ]
        #expect(client.take(2) == data)
        site.write("a", 2)
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a","d":2}}}"#])
        let readsInFlight: Int = site.on { session.value.readsInFlight }
        #expect(readsInFlight == 0)
    }

    /// A write waits for the listen before it, and behind the write the listen is replaced.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aListenIsAnsweredBeforeRequestsThatWaitForIt() throws {
        let site = try Site()
        defer { site.close() }
        site.write("a", 1)
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        site.withBusyWorkers([.brief]) {
            client.request(1, "q", #"{"p":"a","h":""}"#)
            client.request(2, "p", #"{"p":"b","d":2}"#)
            client.request(3, "q", #"{"p":"a","h":""}"#)
            while site.waitingJobs == 0 { site.settle() }
        }
        let sent = client.take(5)
        let data = #"{"t":"d","d":{"a":"d","b":{"p":"a","d":1}}}"#
        func isOK(_ number: Int, _ data: String) -> String {
            #"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":\#(data)}}}"#
        }
        #expect(sent.prefix(2) == [data, isOK(1, "{}")])
        // The other listen's answer doesn't wait for the write's.
        let rest = sent.dropFirst(2)
        #expect(rest.count == 3 && rest.contains(isOK(2, #""""#)))
        let second = rest.filter { $0 != isOK(2, #""""#) }
        #expect(second == [data, isOK(3, "{}")])
    }
}
