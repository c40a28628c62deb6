import HearthModel
import HearthStorage
import HearthWire

/// One Write stream: a handshake, then commits one after the other, each answered in order with a new token.
///
/// A commit that fails ends the stream with its status. What came behind it is dropped; the client sends it again.
/// Source: google.firestore.v1.Firestore.Write.
///
/// `@unchecked Sendable`: belongs to the call's loop.
final class WriteStream: @unchecked Sendable {
    private let call: any StreamCall
    private let service: FirestoreService
    private var database: Database?
    private var waiting: [(request: WriteRequest, sizeBytes: Int)] = []
    private var waitingBytes = 0
    private var isCommitting = false
    private var isHalfClosed = false
    /// How the stream ends when the commit that is under way is answered.
    private var ending: Status?
    private var position: UInt64 = 0
    private var expiry: TokenExpiry?

    init(_ call: any StreamCall, _ service: FirestoreService) {
        self.call = call
        self.service = service
        call.onMessage = { [self] in receive($0) }
        call.onHalfClose = { [self] in
            isHalfClosed = true
            proceed()
        }
        call.onCancel = { [self] in leave() }
        service.streams.add(call) { [weak self] status in
            guard let self else { return }
            self.call.loop.execute { [weak self] in
                self?.ending = status
                self?.proceed()
            }
        }
        expiry = TokenExpiry(of: call) { [weak self] status in
            self?.ending = status
            self?.proceed()
        }
    }

    /// Nothing will be said until something happens.
    var isIdle: Bool { !isCommitting && waiting.isEmpty }

    private func leave() {
        waiting = []
        expiry?.cancel()
        service.streams.remove(call)
    }

    private func end(_ status: Status) {
        leave()
        call.finish(status)
    }

    private func receive(_ bytes: [UInt8]) {
        do throws(Status) {
            let request: WriteRequest
            switch call.format {
            case .protobuf: request = try WriteRequest(protobuf: bytes)
            case .json: request = try WriteRequest(json: bytes, at: "")
            }
            waiting.append((request, bytes.count))
            waitingBytes += bytes.count
            if isFull { call.pauseReading() }
            proceed()
        } catch {
            end(error)
        }
    }

    private func proceed() {
        while !isCommitting, !call.isFinished {
            if let ending { return end(ending) }
            if waiting.isEmpty {
                if isHalfClosed { end(.ok) }
                return
            }
            let (request, sizeBytes) = waiting.removeFirst()
            waitingBytes -= sizeBytes
            if !isFull { call.resumeReading() }
            do throws(Status) {
                if let database {
                    try commit(request, sizeBytes, database)
                } else {
                    try begin(request)
                }
            } catch {
                end(error)
            }
        }
    }

    /// No more is read while so much waits for the commits before it.
    private var isFull: Bool {
        waiting.count >= Limits.streamRequestsWaitingMax || waitingBytes >= Limits.streamRequestsWaitingBytesMax
    }

    private func begin(_ request: WriteRequest) throws(Status) {
        if request.database.isEmpty {
            throw .invalidArgument("'database' must be set on an initial write request.")
        }
        if !request.writes.isEmpty {
            throw .invalidArgument("'writes' must not be set on an initial write request.")
        }
        if !request.streamId.isEmpty || !request.streamToken.isEmpty {
            // No answer is kept for those whose connection broke: the client begins anew and sends what wasn't answered.
            throw .invalidArgument("Resuming streams is not supported, do not set stream ID.")
        }
        database = try service.database(try DatabaseName(parsing: request.database), for: call.identity)
        answer(streamID: String(UInt64.random(in: 1 ... .max)), [], nil)
    }

    private func commit(_ request: WriteRequest, _ sizeBytes: Int, _ database: Database) throws(Status) {
        if request.streamToken.isEmpty {
            throw .invalidArgument("'stream_token' must be set on all but the first write request.")
        }
        if !request.database.isEmpty, try DatabaseName(parsing: request.database) != database.name {
            throw .invalidArgument("A Write stream is of one database, \(database.name).")
        }
        // Clients take every answer behind the first for that to a commit.
        if request.writes.isEmpty { return answer(streamID: "", [], try database.view().readTime) }
        try FirestoreService.checkSize(sizeBytes)
        let writes = try request.writes.map { message throws(Status) in try message.write(database: database.name) }
        let commitGuard = try service.access.commitGuard(call.identity, database.name)
        isCommitting = true
        database.commit(writes, sizeBytes: sizeBytes, guard: commitGuard, requester: call.requester) { [self] result in
            call.onLoop { [self] in
                isCommitting = false
                switch result {
                case .success(let outcome): answer(streamID: "", outcome.results, outcome.commitTime)
                case .failure(let status): end(status)
                }
                proceed()
            }
        }
    }

    private func answer(streamID: String, _ results: [WriteResult], _ commitTime: Timestamp?) {
        position += 1
        let token = Array(String(position).utf8)
        switch call.format {
        case .protobuf:
            var writer = ProtobufWriter()
            writer.writeResponse(streamID: streamID, streamToken: token, results: results, commitTime: commitTime)
            call.send(writer.bytes)
        case .json:
            call.send(
                call.format.encode(
                    WriteResponse(
                        streamId: streamID, streamToken: token, writeResults: results.map(FirestoreService.message),
                        commitTime: commitTime.map { TimestampMessage($0) })))
        }
    }
}
