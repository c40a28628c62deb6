import HearthConcurrency
import HearthModel

/// The TLS connections of one loop: which of them may begin their handshake, and what OpenSSL's memory for them is.
///
/// An unfinished handshake takes up to 67 KB, for a hello of 500 bytes that costs its sender nothing. So a connection's
/// hello stays in the socket's buffer until one of a bounded number of handshakes can begin. An account has no more of them
/// than would be left, so that another account need not wait for their end. While others wait, the oldest unfinished one
/// ends after a short time. Established connections, and the records that peers leave unfinished, which take
/// a buffer each, have bounds, too. At the bound of established ones some without a request are closed
/// (`IdleConnections`); a new one is closed when all are in use.
///
/// `@unchecked Sendable`: all of it belongs to the loop's thread.
final class TLSAdmission: @unchecked Sendable {
    enum Stage { case none, waiting, handshaking, established }

    private let loop: EventLoop
    private let limits: NetworkLimits
    private let counters: LoopCounters
    private let table: ChannelTable
    private let handshakesMax: Int
    private let establishedBytesMax: Int
    private let partialRecordsMax: Int
    private var waiting = HandshakeQueue<SocketChannel>()
    /// The oldest first.
    private var handshaking: [SocketChannel] = []
    private var handshakingAccounts = AccountCounts()
    private var establishedCount = 0
    private var establishedBytes = 0
    private var accounts = AccountCounts()
    /// Runs after a search for idle connections that found fewer than it looked for: until then there is no other.
    private var searchTimer: Timer?
    /// The last search found none, and there are none since.
    private var isInUse = false
    private let currentReluctance = LoopCounter()
    private var isStartDue = false
    private var patienceTimer: Timer?
    private var partialRecords = 0
    /// From a pool that has other users, too.
    private var recordsLoan: MemoryLoan?
    private var areRecordsCovered = true
    private var isRelieving = false

    /// Handshakes that begin in one tick of the loop: each costs about a millisecond, most of it for the signature.
    private static let startsPerTickMax = 4
    /// Of each loop, however many loops there are.
    private static let handshakesMin = 4
    /// Of an established connection, and of HTTP/2 on it.
    static let connectionBytes = 14 << 10
    static let http2Bytes = 13 << 10
    /// OpenSSL's buffer for an incomplete record.
    private static let partialRecordBytes = 17 << 10
    private static let relievingMilliseconds = 50
    /// The part of the bound that is closed at once, so that a search, which sorts all, serves many connections.
    private static let closedPart = 16
    private static let searchMilliseconds = 100
    private static let refusalsPerTickMax = 64

    init(
        loop: EventLoop, loopCount: Int, limits: NetworkLimits, counters: LoopCounters, table: ChannelTable,
        pool: MemoryPool?
    ) {
        self.loop = loop
        self.limits = limits
        self.counters = counters
        self.table = table
        handshakesMax = max(limits.tlsHandshakesMax / loopCount, min(limits.tlsHandshakesMax, Self.handshakesMin))
        establishedBytesMax = limits.tlsConnectionBytesMax / loopCount
        partialRecordsMax = (limits.tlsPartialRecordsMax + loopCount - 1) / loopCount
        recordsLoan = pool.map { MemoryLoan($0, ownBytes: Limits.tlsRecordsOwnBytes / loopCount, keptBytes: 0) }
    }

    // MARK: Handshakes

    /// The channel's hello has arrived. `beginHandshake` follows, at the earliest at the end of this tick.
    func enqueue(_ channel: SocketChannel) {
        waiting.push(channel, number: channel.number, owner: channel.account)
        move(channel, to: .waiting)
    }

    func established(_ channel: SocketChannel) { move(channel, to: .established) }

    /// The connection speaks HTTP/2, which takes more. To be called once it is established. False: it must be closed.
    func usesHTTP2(_ channel: SocketChannel) -> Bool {
        guard channel.tlsStage == .established, !channel.usesHTTP2 else { return true }
        // The bound may be exceeded by as much as the handshakes that had begun, not by all who did not say it in theirs.
        guard establishedBytes < establishedBytesMax + handshakesMax * Self.http2Bytes else {
            counters.connectionsRefused.add(1)
            return false
        }
        channel.usesHTTP2 = true
        establishedBytes += Self.http2Bytes
        updateReluctance()
        return true
    }

    func closed(_ channel: SocketChannel) {
        note(channel, holdsPartialRecord: false)
        move(channel, to: .none)
    }

    private func move(_ channel: SocketChannel, to stage: Stage) {
        switch channel.tlsStage {
        case .none: break
        case .waiting: waiting.remove(number: channel.number)
        case .handshaking:
            handshaking.removeAll { $0 === channel }
            handshakingAccounts.remove(channel.account)
        case .established:
            establishedCount -= 1
            establishedBytes -= bytes(of: channel)
            accounts.remove(channel.account)
        }
        channel.tlsStage = stage
        switch stage {
        case .none, .waiting: break
        case .handshaking:
            handshaking.append(channel)
            handshakingAccounts.add(channel.account)
        case .established:
            establishedCount += 1
            establishedBytes += Self.connectionBytes
            accounts.add(channel.account)
        }
        updateReluctance()
        counters.tlsHandshakesWaiting.set(waiting.count)
        counters.tlsHandshakesOpen.set(handshaking.count)
        counters.tlsConnectionsOpen.set(establishedCount)
        if !waiting.isEmpty, handshaking.count < handshakesMax || patienceTimer == nil { startLater() }
    }

    private func startLater() {
        guard !isStartDue else { return }
        isStartDue = true
        loop.execute { [weak self] in
            guard let self else { return }
            isStartDue = false
            start()
        }
    }

    private func start() {
        var starts = 0
        var refusals = 0
        while !waiting.isEmpty {
            guard starts < Self.startsPerTickMax, refusals < Self.refusalsPerTickMax else { return startLater() }
            guard handshaking.count < handshakesMax || endOldest() else { return }
            let isBelowBound = missingBytes <= 0
            guard isBelowBound || isInUse else {
                if searchTimer == nil { makeWay() }
                return
            }
            guard let channel = waiting.pop(where: mayHandshake) else {
                guard endOldest() else { return }
                continue
            }
            guard isBelowBound else {
                refusals += 1
                counters.connectionsRefused.add(1)
                channel.close()
                continue
            }
            starts += 1
            channel.handshakeBeganAt = loop.now
            move(channel, to: .handshaking)
            channel.beginHandshake()
        }
    }

    /// Whether an account may have a further handshake: it has no more than are left.
    private func mayHandshake(_ account: UInt64) -> Bool {
        handshakingAccounts.counts[account, default: 0] <= handshakesMax - handshaking.count
    }

    /// Ends the oldest handshake of the accounts that may have no more, if it has had its time. If not, a later attempt
    /// follows at the end of that time.
    private func endOldest() -> Bool {
        guard let oldest = handshaking.first(where: { !mayHandshake($0.account) }) ?? handshaking.first else {
            return false
        }
        let end = oldest.handshakeBeganAt + UInt64(limits.tlsHandshakePatienceMilliseconds) * 1_000_000
        guard end <= loop.now else {
            if patienceTimer == nil {
                patienceTimer = loop.schedule(atNanoseconds: end) { [weak self] in
                    self?.patienceTimer = nil
                    self?.start()
                }
            }
            return false
        }
        oldest.timeOut()
        return true
    }

    // MARK: Established connections

    private func bytes(of channel: SocketChannel) -> Int {
        Self.connectionBytes + (channel.usesHTTP2 ? Self.http2Bytes : 0)
    }

    /// What a further handshake would take beyond the bound.
    private var missingBytes: Int {
        establishedBytes + (handshaking.count + 1) * Self.connectionBytes - establishedBytesMax
    }

    /// Closes idle connections, and continues when they are closed.
    private func makeWay() {
        let wanted = max(missingBytes, establishedBytesMax / Self.closedPart)
        let freed = IdleConnections.close(in: table, of: loop, counts: accounts.counts, size: wanted) {
            $0.tlsStage == .established ? bytes(of: $0) : nil
        }
        isInUse = freed == 0
        updateReluctance()
        if freed < wanted { searchLater() }
        startLater()
    }

    private func searchLater() {
        searchTimer = loop.schedule(afterMilliseconds: Self.searchMilliseconds) { [weak self] in
            guard let self else { return }
            searchTimer = nil
            isInUse =
                isInUse && missingBytes > 0
                && !table.channels.contains { $0.tlsStage == .established && $0.idleSince != nil }
            updateReluctance()
            if isInUse { searchLater() }
            start()
        }
    }

    /// The loop with the least is given the next connection; 0 while a handshake can begin. Of loops that must close
    /// others for it that one comes first in which an account has most: each closes only its own, and new connections would
    /// otherwise go on replacing each other on one loop while an account keeps its connections on the others. On any thread.
    var reluctance: Int { currentReluctance.current }

    private func updateReluctance() {
        let isFull = missingBytes > 0
        currentReluctance.set(!isFull ? 0 : isInUse ? .max : .max - 1 - accounts.greatest)
    }

    // MARK: Records

    /// Notes whether OpenSSL holds a buffer for a record of which the peer has sent a part.
    func note(_ channel: SocketChannel, holdsPartialRecord: Bool) {
        guard holdsPartialRecord != (channel.partialRecordSince != nil) else { return }
        channel.partialRecordSince = holdsPartialRecord ? loop.now : nil
        partialRecords += holdsPartialRecord ? 1 : -1
        counters.tlsPartialRecords.set(partialRecords)
        areRecordsCovered = recordsLoan?.cover(partialRecords * Self.partialRecordBytes, isAdministrator: false) ?? true
        guard hasTooManyRecords, !isRelieving else { return }
        isRelieving = true
        relieveLater()
    }

    private var hasTooManyRecords: Bool { partialRecords > partialRecordsMax || !areRecordsCovered }

    private func relieveLater() {
        loop.schedule(afterMilliseconds: Self.relievingMilliseconds) { [weak self] in self?.relieve() }
    }

    /// Closes connections with unfinished records, first those that have completed none for the longest time; far above
    /// the bound without regard to the time.
    private func relieve() {
        let patience = UInt64(limits.tlsHandshakePatienceMilliseconds) * 1_000_000
        var holding = table.channels.compactMap { channel in
            channel.partialRecordSince.map { (channel: channel, since: max($0, channel.lastReceivedAt)) }
        }
        holding.sort { $0.since < $1.since }
        for (channel, since) in holding where hasTooManyRecords {
            guard since + patience <= loop.now || partialRecords > partialRecordsMax * 3 / 2 else { break }
            counters.abuses.add(1)
            channel.close()
        }
        isRelieving = hasTooManyRecords
        if isRelieving { relieveLater() }
    }
}
