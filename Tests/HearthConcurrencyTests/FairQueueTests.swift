import HearthConcurrency
import HearthModel
import HearthTestSupport
import Testing

@Suite("A fair queue")
struct FairQueueTests {
    private func user(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    @Test("returns one connection's elements in order")
    func order() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { queue.append(number, for: user(1, 1)) }
        #expect(queue.removeAll() == Array(0..<1000))
        #expect(queue.isEmpty)
    }

    @Test("serves a new account after one element of another, however many that has queued")
    func accounts() {
        var queue = FairQueue<String>()
        for number in 0..<10_000 { queue.append("many", for: user(1, UInt64(number % 64))) }
        for _ in 0..<100 { _ = queue.popFirst() }
        queue.append("few", for: user(2, 99))
        let next = (0..<2).map { _ in queue.popFirst() }
        #expect(next.contains("few"))
        #expect(queue.count == 9_899)
    }

    @Test("alternates between the connections of one account")
    func connections() {
        var queue = FairQueue<String>()
        for _ in 0..<100 { queue.append("first", for: user(1, 1)) }
        queue.append("second", for: user(1, 2))
        let next = (0..<3).map { _ in queue.popFirst() }
        #expect(next.contains("second"))
    }

    @Test("counts the cost of elements")
    func costs() {
        var queue = FairQueue<String>()
        for _ in 0..<100 { queue.append("heavy", for: user(1, 1), cost: 10) }
        for _ in 0..<100 { queue.append("light", for: user(2, 2), cost: 1) }
        let first = (0..<55).compactMap { _ in queue.popFirst() }
        let heavy = first.filter { $0 == "heavy" }.count
        #expect((4...6).contains(heavy))
    }

    @Test("charges an account that sends each element after the last one was taken", arguments: [true, false])
    func closedLoop(isOneAccount: Bool) {
        let large = Requester(account: 1, connection: 1, isAdministrator: false)
        let small = Requester(account: isOneAccount ? 1 : 2, connection: 2, isAdministrator: false)
        var queue = FairQueue<String>()
        queue.append("large", for: large, cost: 100)
        var given = ["large": 0, "small": 0]
        for _ in 0..<1000 {
            guard let element = queue.popFirst() else { break }
            given[element, default: 0] += 1
            // While the element is processed the others arrive; then its sender receives the answer and sends again.
            if element == "large" || given["small"] == 0 { queue.append("small", for: small, cost: 1) }
            if element == "small" { queue.append("small", for: small, cost: 1) }
            if element == "large" { queue.append("large", for: large, cost: 100) }
        }
        #expect(given["large", default: 0] >= 9 && given["large", default: 0] <= 12)
        // When the queue is empty, no flow has a debt.
        while queue.popFirst() != nil {}
        queue.append("large", for: large, cost: 100)
        queue.append("small", for: small, cost: 1)
        #expect(queue.popFirst() == "large")
    }

    @Test("an idle account saves up no credit")
    func idleness() {
        var queue = FairQueue<Int>()
        for _ in 0..<1000 { queue.append(1, for: user(1, 1)) }
        for _ in 0..<500 { _ = queue.popFirst() }
        for _ in 0..<1000 { queue.append(2, for: user(2, 2)) }
        let next = (0..<100).compactMap { _ in queue.popFirst() }
        #expect((49...51).contains(next.filter { $0 == 1 }.count))
    }

    @Test(
        "flows that send one element at a time do not starve a flow that was served a large one", arguments: [1, 2, 20])
    func oneAfterTheOther(others: UInt64) {
        for ofConnections in [false, true] {
            func other(_ number: UInt64) -> Requester {
                user(ofConnections ? 1 : 10 + number, 10 + number)
            }
            var queue = FairQueue<String>()
            queue.append("much", for: user(1, 1), cost: 2000)
            queue.append("waits", for: user(1, 1))
            #expect(queue.popFirst() == "much")
            for number in 0..<others { queue.append("\(number)", for: other(number), cost: 500) }
            var given = 0
            while let element = queue.popFirst(), let number = UInt64(element), given < 1000 {
                given += 1
                queue.append(element, for: other(number), cost: 500)
            }
            // About as much for each of them.
            #expect(given <= Int(others) * 5)
        }
    }

    @Test("returns every element once", arguments: 0..<50 as Range<UInt64>)
    func random(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
        func draw(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(bound))
        }
        var queue = FairQueue<Int>()
        var given = 0
        var taken: [Int: Int] = [:]
        var last: [UInt64: Int] = [:]
        for _ in 0..<2000 {
            if draw(5) < 3 {
                let connection = draw(9)
                queue.append(
                    given * 16 + connection, for: user(UInt64(connection % 3), UInt64(connection)), cost: draw(20))
                given += 1
            } else if let element = queue.popFirst() {
                taken[element, default: 0] += 1
                let connection = UInt64(element % 16)
                #expect(last[connection] ?? -1 < element)
                last[connection] = element
            }
        }
        for element in queue.removeAll() { taken[element, default: 0] += 1 }
        #expect(taken.count == given)
        #expect(taken.values.allSatisfy { $0 == 1 })
    }
}

/// A fair queue whose longest flows lose their newest elements.
@Suite("A full queue")
struct FullQueueTests {
    private func user(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: account == 0)
    }

    /// Compared with a model: lists by account and connection.
    @Test("removes the newest element of the longest flow, and nothing else", arguments: 0..<50 as Range<UInt64>)
    func longest(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
        func draw(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(bound))
        }
        var queue = FairQueue<Int>()
        var naive: [UInt64: [UInt64: [Int]]] = [:]
        var owners: [Int: (UInt64, UInt64)] = [:]
        func length(_ account: UInt64) -> Int { naive[account]!.values.reduce(0) { $0 + $1.count } }
        func remove(_ element: Int, fromFront: Bool) {
            let (account, connection) = owners[element]!
            let flow = naive[account]![connection]!
            #expect((fromFront ? flow.first : flow.last) == element)
            if fromFront {
                naive[account]![connection]!.removeFirst()
            } else {
                naive[account]![connection]!.removeLast()
            }
            if naive[account]![connection]!.isEmpty { naive[account]![connection] = nil }
            if naive[account]!.isEmpty { naive[account] = nil }
        }
        // Some runs have few flows, others hundreds, most of which are short.
        let (accounts, connections) = [(4, 3), (300, 2), (2, 300)][Int(seed % 3)]
        for number in 0..<4000 {
            let (account, connection) = (UInt64(draw(accounts)), UInt64(draw(connections)))
            switch draw(20) {
            case 0..<11:
                queue.append(number, for: user(account, connection), cost: draw(20))
                naive[account, default: [:]][connection, default: []].append(number)
                owners[number] = (account, connection)
            case 11..<14:
                guard let element = queue.popFirst() else {
                    #expect(naive.isEmpty)
                    continue
                }
                remove(element, fromFront: true)
            case 14:
                let removed = queue.removeAll(of: user(account, connection))
                #expect(removed == naive[account]?[connection] ?? [])
                naive[account]?[connection] = nil
                if naive[account]?.isEmpty == true { naive[account] = nil }
            default:
                guard let element = queue.popLastOfLongest(), let (account, connection) = owners[element] else {
                    #expect(naive.isEmpty)
                    continue
                }
                let clients = naive.keys.filter { $0 != 0 }
                #expect(clients.isEmpty || account != 0)
                #expect(length(account) == (clients.isEmpty ? [0] : clients).map(length).max())
                #expect(naive[account]![connection]!.count == naive[account]!.values.map(\.count).max())
                remove(element, fromFront: false)
            }
            #expect(queue.count == naive.keys.reduce(0) { $0 + length($1) })
        }
        for element in queue.removeAll() { remove(element, fromFront: true) }
        #expect(naive.isEmpty && queue.isEmpty)
    }

    @Test("costs O(log n) in the number of accounts or connections")
    func growth() {
        for ofConnections in [false, true] {
            var costs: [Int] = []
            for count in [100, 1000, 10_000] {
                var queue = FairQueue<Int>()
                func flow(_ number: Int) -> Requester {
                    ofConnections ? user(1, UInt64(number)) : user(UInt64(number + 1), UInt64(number))
                }
                for number in 0..<count { queue.append(number, for: flow(number)) }
                _ = queue.popLastOfLongest()
                let before = queue.visits
                for number in 0..<1000 {
                    queue.append(number, for: flow(number * 7 % count))
                    queue.append(number, for: flow(count + number))
                    #expect(queue.popLastOfLongest() != nil)
                    #expect(queue.popLastOfLongest() != nil)
                }
                costs.append((queue.visits - before) / 2000)
            }
            // With a hundred times as many, the cost may grow by the difference of the logarithms, not in proportion.
            #expect(costs[2] < 200, "\(costs)")
        }
    }
}

@Suite("The network of a peer's address")
struct PeerAddressTests {
    @Test(
        "omits the port, and the host part of an IPv6 address",
        arguments: [
            ("192.0.2.1:5000", "192.0.2.1"), ("[2001:db8:0:1::5]:80", "2001:db8:0:1"), ("[::1]:80", "0:0:0:0"),
            ("[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2"), ("[::ffff:192.0.2.1]:7", "192.0.2.1"),
            ("[fe80::1%eth0]:7", "fe80:0:0:0"), ("", ""), ("unix", "unix"),
        ])
    func network(address: String, network: String) {
        #expect(PeerAddress.network(of: address) == network)
    }
}

@Suite("A worker's thread")
struct WorkerThreadTests {
    @Test("processes all pushed elements in order before it stops")
    func stops() {
        let seen = Gathered<Int>()
        let thread = WorkerThread<Int>(name: "test") { seen.append(contentsOf: $0) }
        for number in 0..<1000 { thread.push(number) }
        thread.stop()
        #expect(seen.values == Array(0..<1000))
        #expect(!thread.push(1))
    }

    @Test("a queue is first in, first out, and shrinks when it is emptied")
    func queue() {
        var queue = Queue<Int>()
        var expected = 0
        for number in 0..<10_000 {
            queue.append(number)
            if number % 3 != 0 {
                #expect(queue.popFirst() == expected)
                expected += 1
            }
        }
        while let next = queue.popFirst() {
            #expect(next == expected)
            expected += 1
        }
        #expect(expected == 10_000)
    }

    // The time limit detects a queue that moves all elements for each removal: it would take hours.
    @Test("a queue of a million elements is emptied in linear time")
    func largeQueue() {
        var queue = Queue<Int>()
        var expected = 0
        let seconds = threadSeconds {
            for number in 0..<1_000_000 { queue.append(number) }
            while let next = queue.popFirst() {
                if next != expected { break }
                expected += 1
                // Elements that are added again go to the end.
                if expected % 10 == 0, queue.count > 500_000 { queue.append(1_000_000 + expected / 10 - 1) }
            }
        }
        #expect(expected > 1_000_000 && queue.isEmpty)
        // Quadratic time would take hours.
        #expect(seconds < 60)
    }
}
