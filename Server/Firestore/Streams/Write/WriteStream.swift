import HearthHost
import HearthModel
import HearthDocuments
import HearthWire

/// Rejects every commit.
private struct RefusingGuard: CommitGuard {
    var status: Status
    func check(_ commit: GuardedCommit) throws(Status) { throw status }
}

/// One Write stream: a handshake, then commits one after the other, each answered in order with a new token.
///
/// A commit that fails ends the stream with its status. Later requests are dropped; the client sends them again. A
/// stream that can be resumed (`ResumableStream`) repeats the response to a commit without committing it again. Source:
/// google.firestore.v1.Firestore.Write.
///
/// `@unchecked Sendable`: belongs to the call's loop.
package final class WriteStream: @unchecked Sendable {
    private let call: any StreamCall
    private let service: FirestoreService
    private var database: Database?
    private var waiting: WaitingRequests
    /// A request is in progress: a worker decodes it, its commit is under way, or the database is being opened.
    private var isBusy = false
    /// The status with which the stream ends when all requests are answered; nil while more may arrive.
    private var closing: Status?
    /// The status with which the stream ends when the commit under way is answered. Later requests are not begun.
    private var ending: Status?
    /// Responses of a stream that cannot be resumed; each token is larger by one.
    private var answers: UInt64 = 0
    private var resumable: ResumableStream?
    private var isOver = false
    /// The stream is on another connection, and moves to this one when that connection has ended.
    private var isWaitingForStream = false
    private var expiry: TokenExpiry?

    package init(_ call: any StreamCall, _ service: FirestoreService) {
        self.call = call
        self.service = service
        waiting = WaitingRequests(service.memory.received, for: call.requester)
        call.onMessage = { [self] in receive($0) }
        call.onHalfClose = { [self] in close(.ok) }
        // Earlier requests are answered first.
        call.onFault = { [self] in close($0) }
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

    /// Nothing will be sent until an event happens.
    package var isIdle: Bool { !isBusy && waiting.isEmpty }

    private func close(_ status: Status) {
        closing = status
        proceed()
    }

    private func leave() {
        isOver = true
        waiting.removeAll()
        expiry?.cancel()
        service.streams.remove(call)
        releaseStream()
    }

    /// Releases the stream for the next connection, when nothing is in progress on this one.
    private func releaseStream() {
        guard isOver, !isBusy || isWaitingForStream, let resumable else { return }
        self.resumable = nil
        service.resumableStreams.release(resumable.key, self)
    }

    /// Another connection resumes the stream. To be called from any thread.
    func yieldStream(_ key: ResumableStream.Key) {
        call.onLoop { [self] in
            guard resumable?.key == key else { return }
            if isOver { return releaseStream() }
            // Not ABORTED, after which a client does not resume: commits of this connection may lack a response.
            ending = ending ?? Self.resumedElsewhere
            proceed()
        }
    }

    private static let resumedElsewhere = Status.unavailable("The stream was resumed on another connection.")

    private func end(_ status: Status) {
        leave()
        call.finish(status)
    }

    private func receive(_ bytes: [UInt8]) {
        if ending != nil { return }
        waiting.append(bytes)
        proceed()
        if !call.isFinished, isBusy, waiting.isFull { call.pauseReading() }
    }

    private func proceed() {
        do throws(Status) {
            while !isBusy, !call.isFinished {
                if let ending { return end(ending) }
                guard let bytes = waiting.popFirst() else {
                    if let closing { end(closing) }
                    break
                }
                if !waiting.isFull { call.resumeReading() }
                if bytes.count < LargeRequests.sizeBytesMin {
                    try perform(try decode(bytes), bytes.count)
                } else {
                    decodeLater(bytes)
                }
            }
            try waiting.count()
        } catch {
            guard isBusy else { return end(error) }
            // The commit under way may still be made, and is answered first.
            waiting.removeAll()
            ending = ending ?? error
        }
    }

    private func decode(_ bytes: [UInt8]) throws(Status) -> WriteRequest {
        switch call.format {
        case .protobuf: try WriteRequest(protobuf: bytes)
        case .json: try WriteRequest(json: bytes, at: "")
        }
    }

    /// Has a worker decode a large request and hand over its commit. The memory of the request counts as used until the
    /// commit is answered.
    private func decodeLater(_ bytes: [UInt8]) {
        isBusy = true
        let database = database
        service.large.run(
            bytes, isJSON: call.format.isJSON, for: call.requester, cancellation: call.cancellation,
            refused: { [self] status in goOn { [self] in end(status) } }
        ) { [self] share in
            do throws(Status) {
                let request = try decode(bytes)
                if let database {
                    try commit(request, bytes.count, database, share)
                } else {
                    goOn { [self] () throws(Status) in
                        defer { share.end() }
                        try begin(request)
                    }
                }
            } catch {
                goOn { [self] in end(error) }
            }
        }
    }

    /// Ends the current work, and continues with the waiting requests.
    private func goOn(_ body: @escaping @Sendable () throws(Status) -> Void) {
        call.onLoop { [self] in
            isBusy = false
            do throws(Status) { try body() } catch { end(error) }
            proceed()
            releaseStream()
        }
    }

    private func perform(_ request: WriteRequest, _ sizeBytes: Int) throws(Status) {
        guard let database else { return try begin(request) }
        isBusy = true
        do throws(Status) {
            try commit(request, sizeBytes, database, nil)
        } catch {
            isBusy = false
            throw error
        }
    }

    private func begin(_ request: WriteRequest) throws(Status) {
        try OnceHeader.refuse(on: call, "A Write stream is resumed by its 'stream_id' and 'stream_token'.")
        if request.database.isEmpty {
            throw .invalidArgument("'database' must be set on an initial write request.")
        }
        if !request.writes.isEmpty {
            throw .invalidArgument("'writes' must not be set on an initial write request.")
        }
        let name = try DatabaseName(parsing: request.database)
        let earlier = try ResumableStream(resuming: request, owner: call.identity, in: name)
        // Requests wait meanwhile as behind a commit.
        guard
            let opened = try service.database(
                name, for: call,
                refused: { [self] status in goOn { [self] in end(status) } },
                again: { [self] in goOn { [self] () throws(Status) in try begin(request) } })
        else {
            isBusy = true
            return
        }
        if let earlier { return resume(earlier, opened) }
        if request.labels[ResumableStream.label] != nil {
            beginResumable(in: opened)
        } else {
            database = opened
            answer(streamID: String(UInt64.random(in: 1 ... .max)), [], nil)
        }
    }

    /// Resumes a stream when its earlier connection has ended. Begins a new one when the database does not know it.
    private func resume(_ earlier: ResumableStream, _ opened: Database) {
        isBusy = true
        isWaitingForStream = true
        resumable = earlier
        service.resumableStreams.hold(earlier.key, self) { [self] in
            goOn { [self] () throws(Status) in
                isWaitingForStream = false
                if isOver { return }
                if try earlier.isKnown(in: opened) {
                    database = opened
                    answer(streamID: "", [], nil)
                } else {
                    resumable = nil
                    service.resumableStreams.release(earlier.key, self)
                    beginResumable(in: opened)
                }
            }
        } refused: { [self] in
            goOn { [self] () throws(Status) in
                isWaitingForStream = false
                resumable = nil
                if !isOver { throw Self.resumedElsewhere }
            }
        }
    }

    /// Begins a resumable stream.
    private func beginResumable(in opened: Database) {
        let new = ResumableStream(owner: call.identity, in: opened)
        resumable = new
        service.resumableStreams.hold(new.key, self) {
        } refused: {
        }
        database = opened
        answer(streamID: new.id, [], nil)
    }

    /// On any thread; the stream is busy.
    /// - Parameter share: the memory of the decoded request, when it is large.
    private func commit(
        _ request: WriteRequest, _ sizeBytes: Int, _ database: Database, _ share: WorkingShare?
    ) throws(Status) {
        if request.streamToken.isEmpty {
            throw .invalidArgument("'stream_token' must be set on all but the first write request.")
        }
        if !request.database.isEmpty, try DatabaseName(parsing: request.database) != database.name {
            throw .invalidArgument("A Write stream is of one database, \(database.name).")
        }
        // Clients take every response after the first one for the response to a commit.
        if request.writes.isEmpty {
            let readTime = try database.view().readTime
            return goOn { [self] in answer(streamID: "", [], readTime) }
        }
        try FirestoreService.checkSize(sizeBytes)
        let writes = try request.writes.map { message throws(Status) in try message.write(database: database.name) }
        let commitGuard: (any CommitGuard)?
        do throws(Status) {
            commitGuard = try service.access.commitGuard(call.identity, database.name)
        } catch {
            if resumable == nil { throw error }
            // A commit that was made while it was allowed gets the same response.
            commitGuard = RefusingGuard(status: error)
        }
        let position = try resumable?.position(of: request)
        database.commit(
            writes, sizeBytes: sizeBytes, guard: commitGuard, requester: call.requester, streamPosition: position,
            author: call.identity.asAuthor
        ) { [self] result in
            share?.end()
            goOn { [self] () throws(Status) in
                let outcome = try result.get()
                resumable?.advance()
                answer(streamID: "", outcome.results, outcome.commitTime)
            }
        }
    }

    private func answer(streamID: String, _ results: [WriteResult], _ commitTime: Timestamp?) {
        answers += 1
        let token = resumable?.token ?? Array(String(answers).utf8)
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
