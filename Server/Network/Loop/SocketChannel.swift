import CLinux
import Glibc
import HearthConcurrency
import HearthModel
import HearthTLS
import Synchronization

/// A non-blocking socket on a loop: reading, TLS, one gathered write per tick, buffered output when the socket is full,
/// orderly closing. It does not interpret the bytes.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class SocketChannel: EventSource, @unchecked Sendable {
    private enum TLSState {
        case plain
        /// A server's connection whose first record is incomplete.
        case awaitingHello(TLSContext)
        /// The hello waits in the socket's buffer until `beginHandshake`.
        case awaitingHandshake(TLSContext)
        case session(TLSSession)
    }

    private enum Closing {
        case no
        case whenFlushed(lingers: Bool)
        /// All output is sent; input is dropped until the peer closes or the time is over.
        case lingering(until: UInt64)
    }

    let loop: EventLoop
    let limits: NetworkLimits
    let remoteAddress: String
    /// Identifies a connection in the process.
    let number = SocketChannel.numbers.add(1, ordering: .relaxed).newValue
    /// Whose connections count together while nothing else is known of the peer: an IPv4 address, or an IPv6 network.
    let account: UInt64
    let createdAt: UInt64
    let isSecure: Bool
    package var driver: (any ChannelDriver)?
    weak var table: ChannelTable?
    var tableIndex = -1
    let counters: LoopCounters
    private(set) var isClosed = false
    private(set) var lastReceivedAt: UInt64
    private(set) var hasReceived = false
    private var tls: TLSState
    /// Instead of the descriptor, in a simulation.
    private let simulated: (any SimulatedSocket)?
    private let admission: TLSAdmission?
    /// These belong to the admission.
    var tlsStage = TLSAdmission.Stage.none
    var handshakeBeganAt: UInt64 = 0
    var usesHTTP2 = false
    var partialRecordSince: UInt64?
    private var hasPeerEnded = false
    private var closing = Closing.no
    private var interest = linux_epoll_in | linux_epoll_rdhup
    private var isReadingPaused = false
    /// Input waits for the account's part of a later tick.
    private var isReadingDue = false
    private var isDirty = false
    /// Output that the kernel did not accept. Freed as soon as it is sent.
    private var pending: [UInt8] = []
    private var pendingStart = 0
    private var lastWriteProgressAt: UInt64
    private var tickEndsAt: UInt64 = 0

    private static let numbers = Atomic<UInt64>(0)
    private static let readsPerTickMax = 16
    private static let flushBytesPerTickMax = 2 * 1024 * 1024

    package convenience init(
        loop: EventLoop, descriptor: Int32, remoteAddress: String, limits: NetworkLimits, counters: LoopCounters
    ) {
        self.init(
            loop: loop, descriptor: descriptor, remoteAddress: remoteAddress, limits: limits, counters: counters,
            tls: nil)
    }

    /// A connection without TLS in a simulation.
    package convenience init(
        loop: EventLoop, simulated: any SimulatedSocket, remoteAddress: String, limits: NetworkLimits,
        counters: LoopCounters
    ) {
        self.init(
            loop: loop, descriptor: -1, remoteAddress: remoteAddress, limits: limits, counters: counters, tls: nil,
            simulated: simulated)
    }

    /// - Parameter tls: for a server's connections with TLS.
    init(
        loop: EventLoop, descriptor: Int32, remoteAddress: String, limits: NetworkLimits, counters: LoopCounters,
        tls: (context: TLSContext, admission: TLSAdmission)?, simulated: (any SimulatedSocket)? = nil
    ) {
        self.simulated = simulated
        self.loop = loop
        self.limits = limits
        self.remoteAddress = remoteAddress
        account = Requester.nobody(at: remoteAddress, connection: number).account
        self.counters = counters
        createdAt = loop.now
        lastReceivedAt = loop.now
        lastWriteProgressAt = loop.now
        isSecure = tls != nil
        admission = tls?.admission
        self.tls = tls.map { .awaitingHello($0.context) } ?? .plain
        super.init(descriptor: descriptor)
    }

    /// Begins to watch the socket. False when the kernel rejects it.
    package func start() -> Bool {
        simulated?.started(self)
        return loop.register(self, events: interest)
    }

    /// The client side: the handshake starts here.
    package func startTLS(_ session: TLSSession) {
        tls = .session(session)
        continueHandshake(session)
    }

    // MARK: Input

    override func handleEvents(_ events: UInt32) {
        guard !isClosed else { return }
        if events & linux_epoll_out != 0 { flushLater() }
        let ended = linux_epoll_rdhup | linux_epoll_hup | linux_epoll_err
        guard events & (linux_epoll_in | ended) != 0 else { return }
        if events & ended != 0 { hasPeerEnded = true }
        if isReadingPaused {
            // While reading is paused the end would be reported repeatedly; a peer that has closed needs no response.
            if events & ended != 0 { endOfInput() }
            return
        }
        if isReadingDue {
            // The end of the input waits behind it. After a reset there is no input, and the reset would be reported in each tick.
            if events & (linux_epoll_hup | linux_epoll_err) != 0 { return close() }
            return updateInterest()
        }
        if work(readInput) { return }
        isReadingDue = true
        updateInterest()
        workLater { [self] in
            isReadingDue = false
            guard !isClosed, !isReadingPaused else { return }
            updateInterest()
            readInput()
        }
    }

    /// Runs work of the channel if its account has some of its part of this tick left.
    private func work(_ body: () -> Void) -> Bool {
        loop.work(for: account, limitNanoseconds: accountTickNanoseconds, body)
    }

    /// Runs work of the channel in a later tick: the next one if the account's part of it suffices.
    func workLater(_ job: @escaping () -> Void) {
        loop.workLater(for: account, limitNanoseconds: accountTickNanoseconds, job)
    }

    private var accountTickNanoseconds: UInt64 { UInt64(limits.accountTickMicroseconds) * 1_000 }

    func pauseReading() {
        guard !isReadingPaused else { return }
        isReadingPaused = true
        updateInterest()
    }

    /// Input resumes from the loop's next tick on, never within this call.
    func resumeReading() {
        guard isReadingPaused, !isClosed else { return }
        isReadingPaused = false
        updateInterest()
        // Data that OpenSSL has read already does not make the socket readable.
        if case .session(let session) = tls, session.hasBufferedInput { readAgainLater() }
    }

    private func readAgainLater() {
        workLater { [self] in
            guard !isClosed, !isReadingPaused else { return }
            readInput()
        }
    }

    /// Begins to count the channel's work in this tick of the loop.
    func beginTick() {
        tickEndsAt = loop.currentNanoseconds() + UInt64(limits.tickMicroseconds) * 1_000
    }

    /// The channel's slice of this tick is used up; the rest waits for the next tick.
    var isTickOver: Bool { loop.currentNanoseconds() >= tickEndsAt }

    private func readInput() {
        beginTick()
        switch tls {
        case .plain: readPlain()
        case .awaitingHello(let context): awaitHello(context)
        case .awaitingHandshake: break
        case .session(let session) where !session.isEstablished: continueHandshake(session)
        case .session(let session): readSecure(session)
        }
    }

    private func readPlain() {
        for _ in 0..<SocketChannel.readsPerTickMax {
            let count = receive(loop.readBuffer)
            if count > 0 {
                deliver(count)
                // A short read means that the socket is empty, so no further system call is needed.
                guard !isClosed, !isReadingPaused, count == loop.readBuffer.count, !isTickOver else { return }
            } else if count == 0 {
                return endOfInput()
            } else if errno == EAGAIN || errno == EINTR {
                return
            } else {
                return close()
            }
        }
    }

    private func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if let simulated { return simulated.receive(buffer) }
        return recv(descriptor, buffer.baseAddress, buffer.count, 0)
    }

    private func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let simulated { return simulated.send(bytes) }
        return Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private func readSecure(_ session: TLSSession) {
        readRecords(session)
        if !isClosed { admission?.note(self, holdsPartialRecord: session.holdsPartialRecord) }
    }

    private func readRecords(_ session: TLSSession) {
        // A TLS record is at most 16 KiB: the same number of bytes needs more reads.
        for _ in 0..<(8 * SocketChannel.readsPerTickMax) {
            switch session.read(into: loop.readBuffer) {
            case .bytes(let count):
                deliver(count)
                guard !isClosed, !isReadingPaused else { return }
                if isTickOver { return readAgainLater() }
            case .wouldBlock: return
            case .end: return endOfInput()
            case .failed: return close()
            }
        }
        readAgainLater()
    }

    private func deliver(_ count: Int) {
        lastReceivedAt = loop.now
        hasReceived = true
        counters.bytesReceived.add(count)
        if case .lingering = closing { return }
        driver?.received(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
    }

    private func endOfInput() {
        if case .lingering = closing { return close() }
        driver?.receivedEnd()
    }

    // MARK: TLS

    /// Peeks at the input: 0x16 begins a TLS handshake record, any other byte is plaintext. The record stays in the
    /// socket's buffer until it is complete and the handshake may begin, because OpenSSL takes much more for a part of it.
    private func awaitHello(_ context: TLSContext) {
        let count = recv(descriptor, loop.readBuffer.baseAddress, ProtocolDetector.tlsRecordBytesMax, Int32(MSG_PEEK))
        guard count > 0 else {
            if count == 0 || (errno != EAGAIN && errno != EINTR) { close() }
            return
        }
        let input = UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count])
        guard input[0] == ProtocolDetector.tlsHandshakeByte else {
            tls = .plain
            counters.connectionsRefused.add(1)
            sendAndClose(ProtocolDetector.plaintextRefusal)
            return
        }
        guard ProtocolDetector.isCompleteTLSRecord(input) else {
            // Only more input is reported from now on, not that there is some.
            return hasPeerEnded ? close() : updateInterest()
        }
        tls = .awaitingHandshake(context)
        isReadingPaused = true
        updateInterest()
        admission?.enqueue(self)
    }

    /// For the admission.
    func beginHandshake() {
        guard !isClosed, case .awaitingHandshake(let context) = tls else { return }
        guard let session = TLSSession(context: context, descriptor: descriptor) else { return close() }
        tls = .session(session)
        isReadingPaused = false
        beginTick()
        continueHandshake(session)
    }

    private func continueHandshake(_ session: TLSSession) {
        switch session.continueHandshake() {
        case .done:
            admission?.established(self)
            updateInterest()
            driver?.secured(applicationProtocol: session.applicationProtocol)
            guard !isClosed else { return }
            flushLater()
            // The first request may arrive with the handshake's last flight.
            readSecure(session)
        case .wantsRead: updateInterest()
        case .wantsWrite: updateInterest(forHandshakeOutput: true)
        case .failed: close()
        }
    }

    private var isHandshaking: Bool {
        switch tls {
        case .plain: false
        case .awaitingHello, .awaitingHandshake: true
        case .session(let session): !session.isEstablished
        }
    }

    // MARK: Output

    /// Schedules `produceOutput` for the end of this tick.
    package func flushLater() {
        guard !isDirty, !isClosed else { return }
        isDirty = true
        loop.flushLater(self)
    }

    /// Sends bytes without a driver, then closes.
    func sendAndClose(_ bytes: [UInt8]) {
        pending.append(contentsOf: bytes)
        closeWhenFlushed(lingers: true)
    }

    /// Sends the driver's remaining output, then closes. With `lingers` the peer gets time to read it.
    package func closeWhenFlushed(lingers: Bool) {
        guard case .no = closing else { return }
        closing = .whenFlushed(lingers: lingers)
        flushLater()
    }

    func flush() {
        isDirty = false
        guard !isClosed else { return }
        if case .session(let session) = tls, !session.isEstablished { return continueHandshake(session) }
        guard !isHandshaking else { return }
        var sent = 0
        while sent < SocketChannel.flushBytesPerTickMax {
            guard sendPending() else { return }
            let scratch = loop.scratch
            scratch.reset()
            do throws(BrokenInvariant) {
                if let driver, isOpenForOutput { try driver.produceOutput(into: scratch) }
            } catch { return broke(error) }
            guard !isClosed else { return }
            guard !scratch.isEmpty else { return outputIsDone() }
            sent += scratch.count
            guard let written = write(scratch.bytes) else { return close() }
            if written < scratch.count {
                pending = Array(scratch.bytes[written...])
                pendingStart = 0
                updateInterest()
                driver?.outputFlushed()
                return
            }
        }
        // Other channels must be served, too.
        flushLater()
    }

    private var isOpenForOutput: Bool {
        if case .lingering = closing { return false }
        return true
    }

    private func outputIsDone() {
        updateInterest()
        if case .whenFlushed(let lingers) = closing { return finishClosing(lingers: lingers) }
        driver?.outputFlushed()
    }

    /// False when bytes remain, or the connection broke.
    private func sendPending() -> Bool {
        guard pendingStart < pending.count else { return true }
        let written = pending.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[pendingStart...])) }
        guard let written else {
            close()
            return false
        }
        pendingStart += written
        guard pendingStart == pending.count else {
            updateInterest()
            return false
        }
        pending = []
        pendingStart = 0
        return true
    }

    /// The number of accepted bytes (fewer than given: the socket is full); nil: the connection is broken.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var total = 0
        while total < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[total...])
            if case .session(let session) = tls {
                guard let written = session.write(rest) else { return nil }
                if written == 0 { break }
                total += written
            } else {
                let written = send(rest)
                if written < 0 {
                    if errno == EINTR { continue }
                    guard errno == EAGAIN else { return nil }
                    break
                }
                total += written
                // The kernel accepted only a part: another call would return EAGAIN.
                if total < bytes.count { break }
            }
        }
        if total > 0 { lastWriteProgressAt = loop.now }
        counters.bytesSent.add(total)
        return total
    }

    private func updateInterest(forHandshakeOutput: Bool = false) {
        guard !isClosed else { return }
        var wanted: UInt32 = isReadingDue && hasPeerEnded ? 0 : linux_epoll_rdhup
        if !isReadingPaused, !isReadingDue { wanted |= linux_epoll_in }
        if pendingStart < pending.count || forHandshakeOutput { wanted |= linux_epoll_out }
        if case .awaitingHello = tls { wanted |= linux_epoll_et }
        guard wanted != interest else { return }
        interest = wanted
        loop.change(self, events: wanted)
    }

    // MARK: Closing

    private func finishClosing(lingers: Bool) {
        guard lingers else { return close() }
        if case .session(let session) = tls { session.sendClose() }
        if let simulated { simulated.finishSending() } else { shutdown(descriptor, Int32(SHUT_WR)) }
        closing = .lingering(until: loop.now + UInt64(limits.lingerMilliseconds) * 1_000_000)
        // No output remains; waiting producers are notified now.
        let driver = driver
        self.driver = nil
        driver?.channelClosed()
        isReadingPaused = false
        updateInterest()
    }

    /// Since when the connection has had no request; nil while it has one. One that only waits for the peer's end is idle.
    var idleSince: UInt64? {
        if case .lingering = closing { return createdAt }
        guard case .no = closing, pendingStart == pending.count else { return nil }
        return driver?.idleSince
    }

    func closeIdle() {
        if let driver { driver.closeIdle() } else { close() }
    }

    /// A condition of ours does not hold in this connection: what else it sends could be wrong.
    func broke(_ broken: BrokenInvariant) {
        loop.brokenInvariants.note(broken)
        close()
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        if case .session(let session) = tls, session.isEstablished, pending.isEmpty { session.sendClose() }
        loop.unregisterAndClose(self)
        simulated?.close()
        admission?.closed(self)
        table?.remove(self)
        pending = []
        let driver = driver
        self.driver = nil
        driver?.channelClosed()
    }

    // MARK: Simulation

    /// Whether input would be reported.
    package var awaitsInput: Bool { !isClosed && interest & linux_epoll_in != 0 }
    /// Whether space for output would be reported.
    package var awaitsSpace: Bool { !isClosed && interest & linux_epoll_out != 0 }

    /// What the system would report of a simulated socket.
    package func simulateEvents(hasInput: Bool, hasSpace: Bool, hasPeerEnded: Bool) {
        var events: UInt32 = 0
        if hasInput { events |= linux_epoll_in }
        if hasSpace { events |= linux_epoll_out }
        if hasPeerEnded { events |= linux_epoll_rdhup }
        handleEvents(events)
    }

    // MARK: Time

    func checkTimeouts(now: UInt64) {
        func isOver(_ since: UInt64, _ milliseconds: Int) -> Bool {
            now > since && now - since > UInt64(milliseconds) * 1_000_000
        }
        if case .lingering(let until) = closing {
            if now >= until { close() }
        } else if isHandshaking {
            if isOver(createdAt, limits.tlsHandshakeMilliseconds) { timeOut() }
        } else if pendingStart < pending.count && isOver(lastWriteProgressAt, limits.writeStallMilliseconds) {
            timeOut()
        } else {
            driver?.checkTimeouts(now: now)
        }
    }

    func timeOut() {
        counters.timeouts.add(1)
        close()
    }
}
