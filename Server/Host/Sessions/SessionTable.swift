import HearthModel
import Synchronization

/// What a session is doing: when there are too many, those of the lowest rank end first.
package enum SessionRank: Int, Sendable, CaseIterable {
    /// Its client has begun it, and has said nothing since.
    case bare
    /// No request or connection of its client is open.
    case unattended
    case attended
}

/// The sessions of one protocol by their ids: a bounded number, which clients share.
///
/// Nobody is refused for what somebody else holds in reserve. When the table is full, a new session takes the place of
/// another one: the oldest bare one of the account that has most of these; then the oldest unattended one, then the oldest
/// attended one, of the account that has most, as long as that has more than the account of the new one; within one
/// account the same holds between its connections. Sessions of administrators make room for no client's.
/// Every operation takes constant time.
package final class SessionTable<Session: Sendable>: Sendable {
    package enum Admission {
        /// - dropped: the session that has made room; it is not in the table any more, and has to be ended.
        case admitted(dropped: Session?)
        case refused
    }

    let sessionsMax: Int
    private let state = Mutex(SessionPlaces<Session>())

    package init(sessionsMax: Int) { self.sessionsMax = sessionsMax }

    var count: Int { state.withLock { $0.entries.count } }

    package subscript(id: String) -> Session? {
        state.withLock { state in state.numbers[id].flatMap { state.entries[$0]?.session } }
    }

    /// - Parameter rank: that it has from the beginning: `attended` where the session is a connection.
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

    /// Nothing happens for an id that isn't there.
    package func change(_ id: String, to rank: SessionRank) {
        state.withLock { state in
            guard let number = state.numbers[id], let old = state.entries[number], old.rank != rank else { return }
            state.change(number) { $0.rank = rank }
        }
    }

    /// The session is on another account from now on.
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

/// What a table holds, and who would have to make room.
private struct SessionPlaces<Session: Sendable>: Sendable {
    struct Entry {
        var id: String
        var session: Session
        var requester: Requester
        var rank: SessionRank
    }

    var numbers: [String: UInt64] = [:]
    var entries: [UInt64: Entry] = [:]
    /// Of sessions that aren't administrators', by rank.
    private var ranks = SessionRank.allCases.map { _ in SessionRanks() }
    /// Sessions of each account that aren't bare.
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

    /// The session that makes room for one of `requester`; nil when none has to.
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
        // One more is the new one's: two that have as much don't push each other out in turn.
        if largest != own, used.count(of: largest) > used.count(of: own) + 1 { return ranks.first(of: largest)?.number }
        guard let first = ranks.first(of: own) else { return nil }
        if rank == .unattended { return first.number }
        return first.connectionCount > ranks.count(of: requester) + 1 ? first.number : nil
    }
}
