import HearthTree
import Testing

@testable import HearthDatabase

/// The connection's machine, step by step.
struct ConnectionTests {
    private let bench = ConnectionBench()
    private var machine: WireConnection { bench.machine }

    private func filtered(_ limit: Int) -> TreeQuery {
        var query = TreeQuery()
        query.limit = limit
        return query
    }

    // MARK: Coming up

    @Test func anonymous() {
        bench.listen("a")
        machine.put(at: "b", Node(1), hash: nil, done: bench.done("put"))
        bench.settle()
        #expect(bench.took() == [])
        machine.start()
        #expect(bench.timers == [.reconnect: 0])
        bench.fire(.reconnect)
        #expect(bench.took() == [], "waits for the token")
        bench.answerToken(nil)
        #expect(bench.took() == ["open - -"])
        #expect(bench.timers == [.handshake: 30_000])
        bench.greet()
        #expect(bench.took() == ["offset 500", "connected", "q /a", "p /b"])
        #expect(bench.timers == [.stable: 30_000, .keepAlive: 45_000])
    }

    @Test func withToken() {
        bench.listen("a")
        machine.start()
        bench.fire(.reconnect)
        bench.answerToken("t1")
        bench.greet()
        #expect(bench.took() == ["open - -", "offset 500", "auth t1"], "the rest waits for the answer")
        bench.reply("auth")
        #expect(bench.took() == ["connected", "q /a"])
    }

    @Test func refusedToken() {
        machine.start()
        for attempt in 1...3 {
            bench.fire(.reconnect)
            #expect(bench.isForcing == (attempt > 1))
            bench.answerToken("t\(attempt)")
            bench.greet()
            _ = bench.took()
            bench.reply("auth", "invalid_token", data: #""no""#)
            #expect(bench.took() == ["warning", "close"])
        }
        #expect(bench.timers == [.reconnect: 30_000], "after three refusals the delay is the longest")
    }

    @Test func expiredToken() {
        machine.start()
        bench.connect(token: "t1")
        _ = bench.took()
        bench.say(#"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#)
        #expect(bench.took() == ["warning", "close", "disconnected"])
        bench.fire(.reconnect)
        #expect(bench.isForcing)
    }

    @Test func missingToken() {
        machine.start()
        bench.fire(.reconnect)
        bench.failToken()
        #expect(bench.took() == ["warning"])
        #expect(bench.timers == [.reconnect: 1_000])
    }

    @Test func silentServer() {
        machine.start()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        bench.fire(.handshake)
        #expect(bench.took() == ["open - -", "warning", "close"])
        #expect(bench.timers == [.reconnect: 1_000])
    }

    @Test func aServerThatCannotBeReachedIsReportedOnceAndNotAfterASuccess() {
        machine.start()
        for _ in 0..<3 {
            bench.fire(.reconnect)
            bench.answerToken(nil)
            bench.lose()
        }
        #expect(bench.took().filter { $0 == "warning" }.count == 1)
        let other = ConnectionBench()
        other.machine.start()
        other.connect()
        other.lose()
        other.fire(.reconnect)
        other.answerToken(nil)
        other.lose()
        #expect(!other.took().contains("warning"))
    }

    @Test func growingDelays() {
        machine.start()
        var delays: [Int] = []
        for _ in 0..<4 {
            delays.append(bench.timers[.reconnect] ?? -1)
            bench.fire(.reconnect)
            bench.answerToken(nil)
            bench.lose()
        }
        #expect(delays == [0, 1_000, 1_300, 1_690])
        bench.connect()
        bench.lose()
        #expect(bench.timers[.reconnect] ?? 0 > 1_690, "a connection that breaks early does not reset the backoff")
        bench.connect()
        bench.fire(.stable)
        bench.lose()
        #expect(bench.timers[.reconnect] == 0)
    }

    // MARK: Breaking

    @Test func sendsAgain() {
        machine.start()
        bench.connect()
        bench.listen("a", hash: "h1")
        bench.listen("b", filtered(2), tag: 7)
        machine.put(at: "p1", Node(1), hash: nil, done: bench.done("p1"))
        machine.merge(at: "p2", [("x", Node(1))], done: bench.done("p2"))
        machine.put(at: "p3", Node(1), hash: "hash", done: bench.done("p3"))
        machine.onDisconnectPut(at: "d1", Node(1), done: bench.done("d1"))
        machine.onDisconnectMerge(at: "d2", [("x", Node(1))], done: bench.done("d2"))
        machine.onDisconnectCancel(at: "d3", done: bench.done("d3"))
        _ = machine.get(at: "g", query: nil) { [bench] in bench.log.append("got \($0)") }
        _ = bench.took()
        bench.settle()
        #expect(bench.took() == ["q /a", "q /b", "p /p1", "m /p2", "p /p3", "o /d1", "om /d2", "oc /d3", "g /g"])
        bench.reply("o")
        bench.reply("p")
        #expect(bench.took() == ["d1 ok", "p1 ok"])
        bench.lose()
        let failed = bench.took()
        #expect(failed.first == "close" && failed.last == "disconnected")
        #expect(failed.contains("p3 disconnect"), "it may have been made: the engine decides what to do")
        #expect(failed.count == 4 && failed[2].hasPrefix("got failure"))
        bench.connect()
        #expect(
            bench.took() == ["open h:1 s1", "offset 500", "connected", "q /a", "q /b", "m /p2", "om /d2", "oc /d3"])
        #expect(bench.sent[0].body["h"] == "h1")
        #expect(bench.sent[1].body["t"] == 7)
    }

    @Test func unsentPutsWithHashStay() {
        machine.put(at: "p", Node(1), hash: "h", done: bench.done("p"))
        machine.start()
        bench.connect()
        #expect(bench.took().last == "p /p")
        bench.reply("p", "datastale")
        #expect(bench.took() == ["p datastale"])
    }

    @Test func answersWaitForListens() {
        machine.start()
        bench.connect()
        bench.listen("a")
        bench.settle()
        bench.reply("q", data: "{}")
        machine.put(at: "a", Node(1), hash: nil, done: bench.done("put"))
        bench.settle()
        bench.lose()
        bench.connect()
        _ = bench.took()
        bench.reply("p")
        #expect(bench.took() == [], "the listen hasn't its data yet")
        bench.say(#"{"t":"d","d":{"a":"d","b":{"p":"a","d":1}}}"#)
        bench.reply("q", data: "{}")
        #expect(bench.took() == ["data /a ", "listened /a ok", "put ok"])
        machine.put(at: "a", Node(2), hash: nil, done: bench.done("put"))
        bench.settle()
        bench.reply("p")
        #expect(bench.took().last == "put ok")
    }

    @Test(arguments: [true, false])
    func answersDoNotWaitForRemovedListens(_ isUnlistened: Bool) {
        bench.listen("a")
        machine.put(at: "a", Node(1), hash: nil, done: bench.done("put"))
        machine.start()
        bench.connect()
        bench.reply("p")
        _ = bench.took()
        if isUnlistened {
            machine.unlisten(at: "a", query: nil, tag: nil)
            bench.settle()
            #expect(bench.took().sorted() == ["n /a", "put ok"])
        } else {
            bench.reply("q", "permission_denied", data: #""Permission denied""#)
            #expect(bench.took() == ["listened /a permission_denied", "put ok"])
        }
    }

    @Test func deferredAnswersOutliveTheConnection() {
        bench.listen("a")
        machine.put(at: "a", Node(1), hash: nil, done: bench.done("put"))
        machine.start()
        bench.connect()
        bench.reply("p")
        bench.lose()
        #expect(!bench.took().contains("put ok"))
        bench.connect()
        #expect(!bench.took().contains("p /a"), "the server has it")
        bench.reply("q", data: "{}")
        #expect(bench.took() == ["listened /a ok", "put ok"])
    }

    @Test func lateEventsOfFormerConnectionsAreDropped() {
        machine.start()
        bench.connect()
        bench.lose()
        _ = bench.took()
        machine.didReceive(frame: Array(#"{"t":"d","d":{"a":"d","b":{"p":"a","d":1}}}"#.utf8), attempt: 1)
        machine.didClose(attempt: 1, reason: "again")
        bench.settle()
        #expect(bench.took() == [])
    }

    @Test func nonsense() {
        machine.start()
        bench.connect()
        _ = bench.took()
        bench.say("nonsense")
        #expect(bench.took() == ["close", "disconnected"])
    }

    // MARK: Listens

    @Test func listens() {
        machine.start()
        bench.connect()
        bench.listen("a")
        bench.listen("b", filtered(1), tag: 1)
        #expect(bench.took().last == "connected", "nothing is sent within the call")
        bench.settle()
        bench.reply("q", data: "{}")
        bench.reply("q", "permission_denied", data: #""Permission denied""#)
        #expect(bench.took() == ["q /a", "q /b", "listened /a ok", "listened /b permission_denied"])
        bench.say(#"{"t":"d","d":{"a":"m","b":{"p":"a","d":{"x":1}}}}"#)
        bench.say(#"{"t":"d","d":{"a":"m","b":{"p":"a","d":{}}}}"#)
        #expect(bench.took() == [#"merge /a ["x"]"#])
        machine.unlisten(at: "a", query: nil, tag: nil)
        bench.settle()
        #expect(bench.took() == ["n /a"])
        bench.lose()
        bench.connect()
        #expect(!bench.took().contains { $0.hasPrefix("q ") })
    }

    @Test func removedBeforeSent() {
        bench.listen("a")
        machine.unlisten(at: "a", query: nil, tag: nil)
        let get = machine.get(at: "g", query: nil) { _ in Issue.record("cancelled") }
        machine.cancelGet(get)
        machine.start()
        bench.connect()
        bench.listen("b")
        machine.unlisten(at: "b", query: nil, tag: nil)
        bench.settle()
        #expect(bench.took() == ["open - -", "offset 500", "connected"])
    }

    @Test func listeningAgainFollowsTheRemoval() {
        machine.start()
        bench.connect()
        bench.listen("a", filtered(1), tag: 1)
        bench.settle()
        _ = bench.took()
        machine.unlisten(at: "a", query: filtered(1), tag: 1)
        bench.listen("a", filtered(1), tag: 2)
        bench.settle()
        #expect(bench.took() == ["n /a", "q /a"])
        bench.reply("q", data: "{}")
        #expect(bench.took() == [], "that was of the first")
        bench.reply("q", data: "{}")
        #expect(bench.took() == ["listened /a ok"])
    }

    @Test func revocation() {
        machine.start()
        bench.connect()
        bench.listen("a", filtered(1), tag: 1)
        bench.listen("a", filtered(2), tag: 2)
        bench.listen("b")
        bench.settle()
        _ = bench.took()
        bench.say(#"{"t":"d","d":{"a":"c","b":{"p":"a","q":[{"l":1,"vf":"l"}]}}}"#)
        #expect(bench.took() == ["revoked /a filtered permission_denied"])
        bench.say(#"{"t":"d","d":{"a":"c","b":{"p":"b"}}}"#)
        #expect(bench.took() == ["revoked /b permission_denied"])
        bench.lose()
        bench.connect()
        #expect(bench.took().filter { $0.hasPrefix("q") } == ["q /a"])
    }

    @Test func missingIndex() {
        machine.start()
        bench.connect()
        bench.listen("a", filtered(1), tag: 1)
        bench.settle()
        _ = bench.took()
        bench.reply("q", data: #"{"w":["no_index"]}"#)
        #expect(bench.took() == ["warning", "listened /a ok"])
    }

    // MARK: Reads

    @Test func gets() {
        machine.start()
        bench.connect()
        var results: [Result<Node, WireFailure>] = []
        _ = machine.get(at: "a", query: nil) { results.append($0) }
        _ = machine.get(at: "b", query: filtered(1)) { results.append($0) }
        bench.settle()
        bench.reply("g", data: #"{"x":1}"#)
        bench.reply("g", "failure", data: #""Index not defined""#)
        #expect(try! results[0].get() == tree(#"{"x":1}"#))
        #expect(results[1] == .failure(WireFailure("failure", "Index not defined")))
    }

    // MARK: Offline and users

    @Test func interruptReasonsDoNotNest() {
        machine.start()
        bench.connect()
        _ = bench.took()
        machine.goOffline(reason: "user")
        machine.goOffline(reason: "user")
        machine.goOffline(reason: "other")
        #expect(bench.took() == ["close", "disconnected"], "the next call finds the engine offline")
        machine.goOnline(reason: "user")
        #expect(bench.timers == [:])
        machine.goOnline(reason: "other")
        #expect(bench.timers == [.reconnect: 0])
    }

    @Test func interruptedFromTheStart() {
        let bench = ConnectionBench(interruptReasons: ["x"])
        bench.machine.start()
        #expect(bench.timers == [:])
        bench.machine.goOnline(reason: "x")
        #expect(bench.timers == [.reconnect: 0])
    }

    @Test func networkChange() {
        machine.start()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        bench.lose()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        bench.lose()
        #expect(bench.timers[.reconnect] == 1_300)
        machine.networkDidChange()
        #expect(bench.timers[.reconnect] == 0)
    }

    @Test func anotherUser() {
        machine.start()
        bench.connect()
        _ = bench.took()
        machine.userDidChange()
        machine.put(at: "a", Node(1), hash: nil, done: bench.done("put"))
        bench.settle()
        #expect(bench.took() == [], "it is to be sent in the name of the new user")
        bench.answerToken("t2")
        #expect(bench.took() == ["auth t2", "p /a"])
        machine.userDidChange()
        bench.answerToken(nil)
        #expect(bench.took() == ["unauth "])
        machine.userDidChange()
        bench.answerToken(nil)
        #expect(bench.took() == [], "it knows")
    }

    @Test func anotherUserWhileConnecting() {
        machine.start()
        bench.fire(.reconnect)
        machine.userDidChange()
        bench.answerToken("t1")
        machine.userDidChange()
        bench.greet()
        #expect(bench.took() == ["open - -", "offset 500"])
        bench.answerToken("t2")
        #expect(bench.took() == ["auth t2"])
        bench.reply("auth")
        #expect(bench.took() == ["connected"])
    }

    // MARK: Hosts

    @Test func namedHostIsRememberedUntilItFails() {
        machine.start()
        bench.connect()
        bench.lose()
        bench.connect()
        bench.lose()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        #expect(bench.took().last == "open h:1 s1")
        bench.lose()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        #expect(bench.took().last == "open - s1")
    }

    @Test func redirect() {
        machine.start()
        bench.fire(.reconnect)
        bench.answerToken(nil)
        bench.say(#"{"t":"c","d":{"t":"r","d":"other:2"}}"#)
        #expect(bench.timers == [.reconnect: 0])
        bench.fire(.reconnect)
        bench.answerToken(nil)
        #expect(bench.took() == ["open - -", "close", "open other:2 -"])
    }

    @Test func redirectsWithoutEndAreFollowedLaterEachTime() throws {
        machine.start()
        for isLater in [false, true] {
            var delays: [Int] = []
            for _ in 0..<6 {
                bench.fire(.reconnect)
                bench.answerToken(nil)
                bench.say(#"{"t":"c","d":{"t":"r","d":"other:2"}}"#)
                delays.append(try #require(bench.timers[.reconnect]))
            }
            #expect(delays[..<3] == [0, 0, 0] && delays[3] > 0 && delays[5] > delays[3], "\(isLater): \(delays)")
            machine.networkDidChange()
        }
    }

    @Test func shutdown() {
        machine.start()
        bench.connect()
        _ = bench.took()
        bench.say(#"{"t":"c","d":{"t":"s","d":"gone"}}"#)
        #expect(bench.took() == ["warning", "close", "disconnected"])
        #expect(bench.timers == [:])
        machine.networkDidChange()
        #expect(bench.timers == [.reconnect: 0])
    }

    // MARK: Keeping alive, purgingCancelsWrites

    @Test func keepsAlive() {
        machine.start()
        bench.connect()
        // The wall clock may go back by any amount.
        bench.nowMilliseconds -= 100_000
        bench.monotonicMilliseconds += 40_000
        bench.listen("a")
        bench.settle()
        _ = bench.took()
        bench.monotonicMilliseconds += 5_000
        bench.fire(.keepAlive)
        #expect(bench.took() == [])
        #expect(bench.timers[.keepAlive] == 40_000)
        bench.monotonicMilliseconds += 40_000
        bench.fire(.keepAlive)
        #expect(bench.took() == ["send 0"])
        #expect(bench.timers[.keepAlive] == 45_000)
    }

    @Test func purge() {
        machine.start()
        bench.connect()
        machine.put(at: "a", Node(1), hash: nil, done: bench.done("a"))
        bench.settle()
        machine.onDisconnectPut(at: "b", Node(1), done: bench.done("b"))
        machine.merge(at: "c", [("x", Node(1))], done: bench.done("c"))
        _ = bench.took()
        machine.purgeOutstandingWrites()
        #expect(bench.took() == ["a write_canceled", "b write_canceled", "c write_canceled"])
        bench.settle()
        bench.reply("p")
        #expect(bench.took() == [], "too late")
        bench.lose()
        bench.connect()
        #expect(bench.took().last == "connected")
    }

    @Test func longMessages() {
        machine.start()
        bench.connect()
        _ = bench.took()
        machine.put(at: "a", Node(.string(String(repeating: "x", count: 40_000))), hash: nil, done: bench.done("a"))
        bench.settle()
        let frames = bench.took()
        #expect(frames.count == 4 && frames[0] == "send 3")
    }
}
