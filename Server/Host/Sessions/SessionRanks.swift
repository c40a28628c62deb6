import HearthModel

/// Sessions of one rank in the order in which they got it, by account and by connection. Every operation takes constant
/// time, because it runs for each handshake of a flood.
struct SessionRanks {
    private struct Flow: Hashable {
        var account: UInt64
        /// Nil for all connections of the account.
        var connection: UInt64?
    }

    /// Linked numbers of sessions; 0 means none.
    private struct Row {
        var first: UInt64 = 0
        var last: UInt64 = 0
        var links: [UInt64: (previous: UInt64, next: UInt64)] = [:]

        mutating func append(_ number: UInt64) {
            links[number] = (last, 0)
            if last == 0 { first = number } else { links[last]?.next = number }
            last = number
        }

        mutating func remove(_ number: UInt64) {
            guard let link = links.removeValue(forKey: number) else { return }
            if link.previous == 0 { first = link.next } else { links[link.previous]?.next = link.next }
            if link.next == 0 { last = link.previous } else { links[link.next]?.previous = link.previous }
        }
    }

    private var accounts = Tally()
    private var connections: [UInt64: Tally] = [:]
    private var rows: [Flow: Row] = [:]

    /// One of the accounts that have the most sessions.
    var largestAccount: UInt64? { accounts.largest }

    func count(ofAccount account: UInt64) -> Int { accounts.count(of: account) }

    func count(of requester: Requester) -> Int {
        connections[requester.account]?.count(of: requester.connection) ?? 0
    }

    /// The oldest session of the account's connection that has the most sessions; of all connections when each has only
    /// one or two.
    func first(of account: UInt64) -> (number: UInt64, connectionCount: Int)? {
        guard let tally = connections[account], let connection = tally.largest else { return nil }
        let count = tally.count(of: connection)
        let flow = Flow(account: account, connection: count > 2 ? connection : nil)
        guard let row = rows[flow] else { return nil }
        return (row.first, count)
    }

    mutating func add(_ number: UInt64, _ requester: Requester) {
        accounts.add(requester.account)
        connections[requester.account, default: Tally()].add(requester.connection)
        for flow in Self.flows(of: requester) { rows[flow, default: Row()].append(number) }
    }

    mutating func remove(_ number: UInt64, _ requester: Requester) {
        accounts.remove(requester.account)
        connections[requester.account]?.remove(requester.connection)
        if connections[requester.account]?.isEmpty == true { connections[requester.account] = nil }
        for flow in Self.flows(of: requester) {
            rows[flow]?.remove(number)
            if rows[flow]?.first == 0 { rows[flow] = nil }
        }
    }

    private static func flows(of requester: Requester) -> [Flow] {
        [
            Flow(account: requester.account, connection: nil),
            Flow(account: requester.account, connection: requester.connection),
        ]
    }
}
