import HearthModel
import Synchronization

/// The sessions of one protocol by their ids: a bounded number, shared by all clients.
///
/// Idle sessions of one client must not block another client. When the table is full, a new session evicts another one:
/// the oldest bare one of the account that has the most of these; then the oldest unattended one, then the oldest
/// attended one, of the account that has the most sessions, if that account has more than the account of the new
/// session. Within one account the same rule applies to its connections. Sessions of administrators are never evicted
/// for a client's session. Every operation takes constant time.
package final class SessionTable<Session: Sendable>: Sendable {
    package enum Admission {
        ///   - dropped: the evicted session; it is no longer in the table, and the caller must end it.
        case admitted(dropped: Session?)
        case refused
    }

    let sessionsMax: Int
    private let state = Mutex(SessionSlots<Session>())

    package init(sessionsMax: Int) { self.sessionsMax = sessionsMax }

    var count: Int { state.withLock { $0.entries.count } }

    package subscript(id: String) -> Session? {
        state.withLock { state in state.numbers[id].flatMap { state.entries[$0]?.session } }
    }

    /// - Parameter rank: the initial rank: `attended` where the session is a connection.
    package func add(
        _ session: Session, id: String, for requester: Requester, rank: SessionRank = .bare
    ) -> Admission {
        state.withLock { state in
            var dropped: Session?
            if state.entries.count >= sessionsMax {
                guard let number = state.victim(for: requester) else { return .refused }
                dropped = state.remove(number)?.session
            }
            state.lastNumber += 1
            state.numbers[id] = state.lastNumber
            state.add(.init(id: id, session: session, requester: requester, rank: rank), state.lastNumber)
            return .admitted(dropped: dropped)
        }
    }

    /// Does nothing for an unknown id.
    package func change(_ id: String, to rank: SessionRank) {
        state.withLock { state in
            guard let number = state.numbers[id], let old = state.entries[number], old.rank != rank else { return }
            state.change(number) { $0.rank = rank }
        }
    }

    /// Moves the session to another account.
    package func change(_ id: String, to requester: Requester) {
        state.withLock { state in
            guard let number = state.numbers[id], state.entries[number]?.requester != requester else { return }
            state.change(number) { $0.requester = requester }
        }
    }

    package func remove(_ id: String) {
        state.withLock { state in
            guard let number = state.numbers[id] else { return }
            _ = state.remove(number)
        }
    }
}

/// The sessions of a table, and the choice of the one to evict.
private struct SessionSlots<Session: Sendable>: Sendable {
    struct Entry {
        var id: String
        var session: Session
        var requester: Requester
        var rank: SessionRank
    }

    var numbers: [String: UInt64] = [:]
    var entries: [UInt64: Entry] = [:]
    /// Sessions of clients other than administrators, by rank.
    private var ranks = SessionRank.allCases.map { _ in SessionRanks() }
    /// Sessions of each account that are not bare.
    private var used = Tally()
    var lastNumber: UInt64 = 0

    mutating func add(_ entry: Entry, _ number: UInt64) {
        entries[number] = entry
        guard !entry.requester.isAdministrator else { return }
        ranks[entry.rank.rawValue].add(number, entry.requester)
        if entry.rank != .bare { used.add(entry.requester.account) }
    }

    private mutating func takeOut(_ number: UInt64) -> Entry? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        if !entry.requester.isAdministrator {
            ranks[entry.rank.rawValue].remove(number, entry.requester)
            if entry.rank != .bare { used.remove(entry.requester.account) }
        }
        return entry
    }

    mutating func change(_ number: UInt64, _ body: (inout Entry) -> Void) {
        guard var entry = takeOut(number) else { return }
        body(&entry)
        add(entry, number)
    }

    mutating func remove(_ number: UInt64) -> Entry? {
        guard let entry = takeOut(number) else { return nil }
        numbers[entry.id] = nil
        return entry
    }

    /// The session to evict for a new one of `requester`; nil for none.
    func victim(for requester: Requester) -> UInt64? {
        let bare = ranks[SessionRank.bare.rawValue]
        if let account = bare.largestAccount, let first = bare.first(of: account) { return first.number }
        for rank in [SessionRank.unattended, .attended] {
            if let number = victim(of: ranks[rank.rawValue], rank, for: requester) { return number }
        }
        return nil
    }

    private func victim(of ranks: SessionRanks, _ rank: SessionRank, for requester: Requester) -> UInt64? {
        guard let largest = ranks.largestAccount else { return nil }
        if requester.isAdministrator { return ranks.first(of: largest)?.number }
        let own = requester.account
        // The new session counts as one more: otherwise two equal accounts would evict each other alternately.
        if largest != own, used.count(of: largest) > used.count(of: own) + 1 { return ranks.first(of: largest)?.number }
        guard let first = ranks.first(of: own) else { return nil }
        if rank == .unattended { return first.number }
        return first.connectionCount > ranks.count(of: requester) + 1 ? first.number : nil
    }
}
