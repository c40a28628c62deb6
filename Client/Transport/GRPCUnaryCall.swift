import CCurl
import HearthHTTPClient
import HearthModel

/// A call with one request message that is known from the start, and a response that is collected. It uses a shared
/// connection. Used on the loop's thread.
final class GRPCUnaryCall: TransferDelegate, LoopActivity {
    enum Outcome: Sendable {
        case messages([[UInt8]])
        case failed(Status)
        /// Whether the server answered before the message was sent completely, and libcurl 7.88 dropped that answer
        /// when it found the stream closed. The request can be sent again over another connection.
        case answerLost
    }

    private let connections: GRPCConnections
    private let path: String
    private let headers: [String]
    private let message: [UInt8]
    private let prefix: [UInt8]
    private let messageBytesMax: Int
    private let messageCountMax: Int
    private var done: ((Outcome) -> Void)?

    private var reader: GRPCAnswerReader
    private var messages: [[UInt8]] = []
    private var messagesBytes = 0
    private var transfer: Transfer?
    private var role = GRPCConnections.Role.opener
    /// Set and counted by `GRPCConnections`.
    private var isAttempting = false
    private var isReady = false
    private var isCompleted = false
    private var wasRefusedSocket = false
    private var wasRefusedByServer = false
    private var hasRetried = false
    private var timer: TransportTimer?

    init(
        connections: GRPCConnections, path: String, headers: [String], message: [UInt8], prefix: [UInt8],
        messageBytesMax: Int, messageCountMax: Int, done: @escaping (Outcome) -> Void
    ) {
        self.connections = connections
        self.path = path
        self.headers = headers
        self.message = message
        self.prefix = prefix
        self.messageBytesMax = messageBytesMax
        self.messageCountMax = messageCountMax
        self.done = done
        reader = GRPCAnswerReader(messageBytesMax: messageBytesMax)
    }

    func start(timeoutMilliseconds: Int?) {
        connections.loop.add(self)
        if let timeoutMilliseconds {
            timer = connections.loop.schedule(afterMilliseconds: timeoutMilliseconds) { [unowned self] in
                timer = nil
                abort(Status(.deadlineExceeded, "\(connections.address.string) did not answer \(path) in time"))
            }
        }
        connections.begin(self)
    }

    // MARK: Attempts

    func startAttempt(_ role: GRPCConnections.Role) {
        self.role = role
        isAttempting = true
        isReady = false
        isCompleted = false
        wasRefusedSocket = false
        wasRefusedByServer = false
        reader = GRPCAnswerReader(messageBytesMax: messageBytesMax)
        messages = []
        messagesBytes = 0
        do throws(Status) {
            let transfer = try Transfer(loop: connections.loop, pool: try connections.sharedPool(), delegate: self)
            self.transfer = transfer
            try connections.prepare(transfer, path: path, headers: headers, opensConnection: role == .opener)
            transfer.setBody(prefix, message)
            transfer.watchForRefusal()
            try transfer.start()
        } catch {
            finish(.failed(error), connectFailure: nil)
        }
    }

    /// Ends the running attempt, if there is one.
    private func endAttempt(connectFailure: Status?) {
        guard isAttempting else { return connections.forget(self) }
        isAttempting = false
        if !isCompleted { transfer?.forbidReuse() }
        transfer?.detach()
        transfer = nil
        connections.attemptEnded(self, wasReset: isReady && !isCompleted, connectFailure: connectFailure)
    }

    /// Flushes resets of neighbours.
    func nudge() { if isReady, !isCompleted { transfer?.nudge() } }

    func abort(_ status: Status) { finish(.failed(status), connectFailure: nil) }

    private func finish(_ outcome: Outcome, connectFailure: Status?) {
        guard let done else { return }
        self.done = nil
        if let timer { connections.loop.cancelTimer(timer) }
        timer = nil
        connections.loop.remove(self)
        endAttempt(connectFailure: connectFailure)
        done(outcome)
    }

    // MARK: TransferDelegate

    func transferMayConnect(_ transfer: Transfer) -> Bool {
        // The opener's first connection may use several sockets, for IPv4 and IPv6.
        if role == .opener, !isReady { return true }
        wasRefusedSocket = true
        return false
    }

    func transferIsReady(_ transfer: Transfer) -> Bool {
        // The second connection: libcurl begins again automatically.
        guard !isReady else { return false }
        isReady = true
        if role == .opener { transfer.mark() }
        return true
    }

    func transferWasRefused(_ transfer: Transfer) { wasRefusedByServer = true }

    func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer) {
        reader.readLine(line)
        transfer.mark()
    }

    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) {
        reader.append(bytes)
        transfer.mark()
    }

    func transferProcesses(_ transfer: Transfer) {
        if isReady, role == .opener { connections.openerIsReady(self) }
        guard done != nil, transfer === self.transfer else { return }
        takeMessages()
        if reader.earlyFailure != nil || reader.isComplete { finish(nil) }
    }

    private func takeMessages() {
        do throws(Status) {
            while let message = try reader.next() {
                messages.append(message)
                messagesBytes += message.count
                guard messages.count <= messageCountMax else {
                    return abort(.internalError("more than one message answers \(path)"))
                }
                guard messagesBytes <= GRPCLimits.collectedBytesMax else {
                    return abort(.resourceExhausted("the answer to \(path) is too large"))
                }
            }
            // The reader stores the error.
        } catch {}
    }

    func transferCompleted(_ transfer: Transfer, _ code: CURLcode) {
        guard transfer === self.transfer else { return }
        isCompleted = true
        if code == CURLE_OK {
            // libcurl also reports success when the server closes the connection in the middle of a response.
            let isCut = reader.head.phase != .trailers
            return finish(isCut ? .unavailable("\(connections.address.string): the answer broke off") : nil)
        }
        let hasAnswer = reader.head.status != 0
        if !hasAnswer, role == .follower, wasRefusedSocket, !isReady {
            isAttempting = false
            transfer.detach()
            self.transfer = nil
            return connections.followerWasRefused(self)
        }
        let neverArrived = wasRefusedByServer || (isReady && transfer.requestBytesSent == 0)
        if !hasAnswer, neverArrived, !hasRetried {
            hasRetried = true
            endAttempt(connectFailure: nil)
            return connections.begin(self)
        }
        if !hasAnswer, code == CURLE_HTTP2_STREAM, transfer.bodyBytesSent == 0 {
            return finish(.answerLost, connectFailure: nil)
        }
        let status = connections.status(transfer, code, isReady: isReady)
        if !isReady, role == .opener { return finish(.failed(status), connectFailure: status) }
        finish(status)
    }

    /// The response is complete or broken.
    private func finish(_ transferFailure: Status?) {
        takeMessages()
        let status = reader.finalStatus(failure: transferFailure)
        guard status.code == .ok else { return finish(.failed(status), connectFailure: nil) }
        finish(.messages(messages), connectFailure: nil)
    }
}
