import HearthConcurrency
import HearthModel
import HearthRules
import HearthTree
import HearthTreeStorage
import HearthTestSupport
import Testing

@testable import HearthHost

/// Small reads do not wait for long reads and decoding, and the memory for listeners' queries is counted.
@Suite struct BriefReadTests {
    private func children(_ count: Int) -> Node {
        Node(
            children: (0..<count).map { number in
                (TreeKey("k\(number)"), Node(children: [(TreeKey("n"), Node(.integer(Int64(number))))]))
            })
    }

    private func number(of answers: [String], containing string: String) -> Int {
        answers.filter { $0.contains(string) }.count
    }

    /// Queries and their listens must not wait for the threads of long reads.
    @Test(.timeLimit(.minutes(Patience.minutes))) func smallReadsDontWaitForLongOnes() throws {
        let site = try Site()
        defer { site.close() }
        site.write("large", children(20_000))
        site.write("small", children(3))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        site.withBusyWorkers([.short, .long, .long]) {
            client.request(1, "g", #"{"p":"small"}"#)
            client.request(2, "g", #"{"p":"large","q":{"l":2,"vf":"l","i":".key"}}"#)
            client.request(3, "q", #"{"p":"large","q":{"l":2,"vf":"r","i":".key"},"t":1,"h":""}"#)
            client.request(4, "q", #"{"p":"small","q":{"i":".value"},"t":2,"h":""}"#)
            client.request(5, "o", #"{"p":"left","d":1}"#)
            // Four answers, and the data of two listens.
            let answers = client.take(7)
            #expect(number(of: answers, containing: #""s":"ok""#) == 5, "\(answers)")
            #expect(number(of: answers, containing: #""k9999""#) == 1, "\(answers)")
        }
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func largeDataIsReadByLongReads() throws {
        let site = try Site()
        defer { site.close() }
        site.write("large", children(20_000))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        let queries = [#"{"i":".value","l":1,"vf":"l"}"#, #"{"i":".key"}"#, #"{"i":"n","sp":1}"#]
        for (number, query) in queries.enumerated() {
            client.request(number, "q", #"{"p":"large","q":\#(query),"t":\#(number),"h":""}"#)
        }
        let answers = client.take(6)
        #expect(number(of: answers, containing: #""s":"ok""#) == 3)
        #expect(site.pool.statistics.long.waits.reduce(0, +) >= 3)
    }

    /// Rules that read much must not run on loops or on the threads of small reads.
    @Test(.timeLimit(.minutes(Patience.minutes))) func rulesThatReadMuchRunOnLongReads() throws {
        let site = try Site()
        defer { site.close() }
        let rules = #"""
            {"rules":{"judged":{".read":"root.child('string').val().contains('b') == false"},"free":{".read":true},
            "refused":{".read":"root.child('string').val().contains('b')"}}}
            """#
        site.namespace.setRules(try TreeRuleset.compile(Array(rules.utf8)))
        site.write("string", Node(.string(String(repeating: "a", count: 1_000_000))))
        site.write("judged", children(3))
        let (client, other) = (site.open(), site.open(connection: 2))
        defer {
            client.end()
            other.end()
        }
        _ = (client.take(1), other.take(1))
        site.withBusyWorkers([.long, .long]) {
            client.request(1, "g", #"{"p":"judged"}"#)
            client.request(2, "g", #"{"p":"refused"}"#)
            client.request(3, "q", #"{"p":"judged","h":""}"#)
            other.request(4, "g", #"{"p":"free"}"#)
            let answer = other.take(1)
            #expect(answer.count == 1 && answer[0].contains(#""r":4"#), "\(answer)")
            while site.pool.statistics.long.waiting == 0 {}
        }
        // Three answers, and the data of the listen.
        let answers = client.take(4)
        #expect(number(of: answers, containing: #""s":"ok""#) == 2, "\(answers)")
        #expect(number(of: answers, containing: #""s":"permission_denied""#) == 1, "\(answers)")
        #expect(number(of: answers, containing: #""k2""#) == 2, "\(answers)")
    }

    // MARK: Memory

    @Test(.timeLimit(.minutes(Patience.minutes))) func memoryOfQueriesIsChargedToTheListener() throws {
        let windows = MemoryBudget(bytesMax: 10 << 20, shareBytesMax: 3 << 20, smallBytesMax: 0)
        let site = try Site(ServerMemory(windows: windows))
        defer { site.close() }
        site.write("large", children(20_000))
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.request(1, "q", #"{"p":"large","q":{"i":"n","l":1,"vf":"l"},"t":1,"h":""}"#)
        #expect(number(of: client.take(2), containing: #""s":"ok""#) == 1)
        // Without an index the keys of all children are kept.
        #expect(windows.usedBytes > 20_000 * 90)
        // There is no memory for a second one, which fails alone.
        client.request(2, "q", #"{"p":"large","q":{"i":"n","l":2,"vf":"l"},"t":2,"h":""}"#)
        let refused = client.take(1)
        #expect(refused.first?.contains(#""r":2,"b":{"s":"too_big""#) == true, "\(refused)")
        #expect(client.fault == nil)
        client.end()
        while windows.usedBytes > 0 { site.settle() }
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func aWindowThatGrowsIsCountedAsItGrows() throws {
        let windows = MemoryBudget(bytesMax: 10 << 20, shareBytesMax: 10 << 20, smallBytesMax: 0)
        let site = try Site(ServerMemory(windows: windows))
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.request(1, "q", #"{"p":"a","q":{"i":".key","l":1000,"vf":"l"},"t":1,"h":""}"#)
        _ = client.take(2)
        #expect(windows.usedBytes < 1024)
        for number in 0..<100 { site.write(TreePath("a/k\(number)"), 1) }
        site.settle()
        #expect(windows.usedBytes > 80 * 90)
        site.write("a", .empty)
        site.settle()
        #expect(windows.usedBytes < 2048)
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func disconnectWritesAreChargedToTheClient() throws {
        let received = MemoryBudget(bytesMax: 100 << 20, shareBytesMax: 12 << 20, smallBytesMax: 0)
        let site = try Site(ServerMemory(received: received))
        defer { site.close() }
        let clients = [site.open(), site.open(connection: 2)]
        for client in clients { _ = client.take(1) }
        let ones = "[" + String(repeating: "1,", count: 50_000) + "1]"
        var answers: [String] = []
        for (number, client) in clients.enumerated() {
            for wish in 0..<2 {
                client.request(wish, "o", #"{"p":"left/\#(number)/\#(wish)","d":\#(ones)}"#)
                answers += client.take(1)
            }
        }
        // More than two nodes of fifty thousand children exceed the account's share.
        #expect(number(of: answers, containing: #""s":"ok""#) == 2, "\(answers)")
        #expect(number(of: answers, containing: #""s":"too_big""#) == 2)
        #expect(received.usedBytes > 100_000 * 90 && received.usedBytes <= 12 << 20)
        clients[0].request(7, "oc", #"{"p":"left","d":null}"#)
        _ = clients[0].take(1)
        #expect(received.usedBytes < 1024 * 1024)
        for client in clients { client.end() }
        while received.usedBytes > 0 { site.settle() }
    }
}
