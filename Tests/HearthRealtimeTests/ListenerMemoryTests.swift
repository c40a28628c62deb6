import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage
import HearthTestSupport
import Testing

@testable import HearthHost
@testable import HearthRealtimeServer

/// Requests that need more memory than there is fail alone: their connection carries others.
@Suite struct ListenerMemoryTests {
    private static func budget(_ bytes: Int) -> MemoryBudget { MemoryBudget(bytesMax: bytes, shareBytesMax: bytes) }

    private func people(_ count: Int) -> Node {
        Node(children: (0..<count).map { (TreeKey("p\($0)"), inner(["age": Node(.integer(Int64($0)))])) })
    }

    private func inner(_ children: [(TreeKey, Node)]) -> Node { Node(children: children) }
    private func inner(_ children: [String: Node]) -> Node {
        Node(children: children.map { (TreeKey($0.key), $0.value) })
    }

    /// A query without a limit needs no memory for its children, with an index or without.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aListenWithoutALimitNeedsNoMemory() throws {
        let site = try Site(ServerMemory(windows: Self.budget(1000)))
        defer { site.close() }
        site.write("people", people(400))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.request(1, "q", #"{"p":"people","q":{"i":"age","sp":390},"t":1,"h":""}"#)
        let first = client.take(2)
        #expect(first.count == 2 && first[0].contains("p399") && !first[0].contains("p389"))
        #expect(first[1].contains("no_index") && first[1].contains(#""s":"ok""#))
        for (number, path, value, expected) in [
            // It enters, changes and leaves; a child that does not match causes no event.
            (2, "people/p5/age", "500", #""p":"people/p5","d":{"age":500}"#),
            (3, "people/p5/age", "501", #""p":"people/p5/age","d":501"#),
            (4, "people/p5/age", "6", #""p":"people/p5","d":null"#), (5, "people/p7/age", "8", nil),
            (6, "people/p399", "null", #""p":"people/p399","d":null"#),
        ] as [(Int, String, String, String?)] {
            client.request(number, "p", #"{"p":"\#(path)","d":\#(value)}"#)
            let sent = client.take(expected == nil ? 1 : 2)
            if let expected { #expect(sent.first?.contains(expected) == true, "\(sent)") }
            #expect(sent.last?.contains(#""r":\#(number),"#) == true, "\(sent)")
        }
        #expect(client.fault == nil)
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func aListenWithoutMemoryFailsAlone() throws {
        let site = try Site(ServerMemory(windows: Self.budget(1000)))
        defer { site.close() }
        site.write("people", people(400))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.request(1, "q", #"{"p":"other","h":""}"#)
        _ = client.take(2)
        client.request(2, "q", #"{"p":"people","q":{"i":"age","l":300,"vf":"l"},"t":1,"h":""}"#)
        let refused = client.take(1)
        #expect(refused.first?.contains(#""r":2,"b":{"s":"too_big""#) == true, "\(refused)")
        client.request(3, "p", #"{"p":"other","d":1}"#)
        let sent = client.take(2)
        #expect(sent.first?.contains(#""p":"other","d":1"#) == true, "\(sent)")
        #expect(client.fault == nil)
    }

    /// A window of very many children without an index keeps some of them.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [false, true])
    func aWindowOfAScanFollowsChanges(isLimitedToLast: Bool) throws {
        let bench = try Bench()
        defer { bench.close() }
        let count = 60_000
        var model = Node.empty
        func write(_ changes: [TreeChange]) {
            bench.write(changes)
            model = model.applying(changes)
        }
        write([TreeChange(path: "people", node: people(count))])
        var query = TreeQuery()
        query.index = .child("age")
        query.limit = 3
        query.isLimitedToLast = isLimitedToLast
        _ = bench.listen(to: "people", query, on: 0)
        bench.settle()
        #expect(bench.allAgree(with: model, "at first"))
        let edge = isLimitedToLast ? count - 1 : 0
        let step = isLimitedToLast ? -1 : 1
        for round in 0..<6 {
            // Members go, and one comes.
            write([TreeChange(path: "people" + TreePath(keys: [TreeKey("p\(edge + step * round)")]), node: .empty)])
            let age = Node(.integer(Int64(isLimitedToLast ? count + round : -round)))
            write([
                TreeChange(path: "people" + TreePath(keys: [TreeKey("new\(round % 3)"), TreeKey("age")]), node: age)
            ])
            bench.settle()
            #expect(bench.allAgree(with: model, "round \(round)"))
        }
        for round in 0..<3 {
            write([TreeChange(path: "people" + TreePath(keys: [TreeKey("new\(round)")]), node: .empty)])
            bench.settle()
            #expect(bench.allAgree(with: model, "without \(round)"))
        }
    }

    @Test func aScanThatKeepsAPartIsReadAgainWhenTooManyAreRemoved() throws {
        let query = {
            var query = TreeQuery()
            query.index = .child("age")
            query.limit = 2
            return query
        }()
        let positions = (0..<7).map {
            FilteredWindow.Position(value: .scalar(.integer($0)), key: TreeKey("p\($0)"))
        }
        var window = FilteredWindow(query, positions: positions, isComplete: false, keepsAll: false, reserve: 5)
        for number in 0..<5 {
            let touched = FilteredWindow.Touched(
                key: TreeKey("p\(number)"), before: .scalar(.integer(Int64(number))), after: nil)
            let difference = FilteredWindow.Difference(
                entering: [TreeKey("p\(number + 2)")], leaving: [TreeKey("p\(number)")])
            #expect(window.apply([touched]) == .changed(difference))
        }
        let last = FilteredWindow.Touched(key: TreeKey("p5"), before: .scalar(.integer(5)), after: nil)
        #expect(window.apply([last]) == .unsound(keysBefore: [TreeKey("p5"), TreeKey("p6")]))
    }

    // MARK: Requests

    /// Requests that wait are counted; the last of them fail when there are too many.
    @Test(.timeLimit(.minutes(Patience.minutes))) func writesThatMayNotWaitFailAlone() throws {
        let site = try Site(ServerMemory(received: Self.budget(40_000)))
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let count = Limits.realtimeWritesInFlightMax + 10
        let string = String(repeating: "x", count: 5_000)
        site.withBusyWriter {
            for number in 0..<count { client.request(number, "p", #"{"p":"a/k\#(number)","d":"\#(string)"}"#) }
            let refused = client.take(1)
            #expect(refused.allSatisfy { $0.contains(#""s":"unavailable""#) }, "\(refused)")
        }
        // Each request has one answer.
        var answers: Set<Int> = []
        let isAnswered = awaited { () -> Bool? in
            for message in client.sent {
                let parts = message.split(separator: #""r":"#)
                if parts.count == 2, let number = Int(parts[1].prefix { $0.isNumber }) { answers.insert(number) }
            }
            return answers.count >= count - 10 ? true : nil
        }
        #expect(isAnswered == true)
        #expect(client.fault == nil)
        client.request(count, "g", #"{"p":"a/k0"}"#)
        #expect(awaited { client.sent.contains { $0.contains(#""r":\#(count),"#) } ? true : nil } == true)
    }

    /// A large request for which there is no worker.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aRequestThatNoWorkerDecodesFailsAlone() throws {
        let site = try Site(jobsMax: 0)
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let string = String(repeating: "x", count: LargeRequests.sizeBytesMin)
        client.request(1, "p", #"{"p":"a","d":"\#(string)"}"#)
        let answer = client.take(1)
        #expect(answer.first?.contains(#""r":1,"b":{"s":"#) == true, "\(answer)")
        #expect(client.fault == nil)
    }
}
