import HearthModel
import HearthWire

/// The engine's interface to the network: the active targets, the writes to send, and the two streams. All calls come
/// from the worker queue.
final class RemoteStore {
    static let pipelineCountMax = 10

    private let database: DatabaseName
    private let localStore: LocalStore
    let queue: WorkerQueue
    private let targetSerializer: TargetSerializer
    private let mutationSerializer: MutationSerializer
    private let watchStream: ManagedStream<ListenRequest, ListenResponse>
    private let writeStream: ManagedStream<WriteRequest, WriteResponse>
    private var onlineState: OnlineStateTracker!
    unowned var engine: SyncEngine!

    private var isNetworkEnabled = false
    /// The cache temporarily cannot be written.
    private var isPaused = false
    private var mayUseNetwork: Bool { isNetworkEnabled && !isPaused }
    private var listenTargets: [Int32: TargetData] = [:]
    /// Targets that were sent on this stream, and those of them that are not current yet: the server may still reject
    /// them.
    private var sentTargets: Set<Int32> = []
    private var loadingTargets: Set<Int32> = []
    /// Targets are sent one at a time: the server ended the stream because of one of them, and did not name it.
    private var isCautious = false
    private var aggregator: WatchChangeAggregator?
    /// The last message that could not be read ended a stream, and no stream has lasted since then.
    private var isWatchUnreadable = false
    private var pipeline: [MutationBatch] = []
    private var isHandshakeDone = false
    /// The handshake named a stream.
    private var isStreamResumed = false
    private var isStreamResumable = false
    /// No handshake with a label was rejected.
    private var takesLabels = true
    private var streamToken: [UInt8] = []
    private var hasResponseAfterHandshake = false

    init(
        database: DatabaseName, localStore: LocalStore, datastore: any Datastore, queue: WorkerQueue,
        tokens: @escaping TokenSource, invalidateToken: @escaping () -> Void
    ) {
        self.database = database
        self.localStore = localStore
        self.queue = queue
        targetSerializer = TargetSerializer(database: database)
        mutationSerializer = MutationSerializer(database: database)
        watchStream = ManagedStream(
            queue: queue,
            timers: .init(idle: .listenStreamIdle, health: .listenStreamHealth, backoff: .listenStreamBackoff),
            tokens: tokens, invalidateToken: invalidateToken
        ) { token, onEvent in
            datastore.openListen(
                headers: RequestHeaders(database: database, authorizationToken: token), onEvent: onEvent)
        }
        writeStream = ManagedStream(
            queue: queue,
            timers: .init(idle: .writeStreamIdle, health: .writeStreamHealth, backoff: .writeStreamBackoff),
            tokens: tokens, invalidateToken: invalidateToken
        ) { token, onEvent in
            datastore.openWrite(
                headers: RequestHeaders(database: database, authorizationToken: token), onEvent: onEvent)
        }
        onlineState = OnlineStateTracker(queue) { [unowned self] in engine.take($0) }
        onlineState.onWarning = { [unowned self] in engine.onWarning($0) }
        watchStream.onOpen = { [unowned self] in watchStreamOpened() }
        watchStream.onResponse = { [unowned self] in take($0) }
        watchStream.onClose = { [unowned self] in watchStreamClosed($0) }
        writeStream.onOpen = { [unowned self] in writeStreamOpened() }
        writeStream.onResponse = { [unowned self] in take($0) }
        writeStream.onClose = { [unowned self] in writeStreamClosed($0) }
        writeStream.finalRequest = { [unowned self] in
            isHandshakeDone ? WriteRequest(streamToken: streamToken) : nil
        }
    }

    // MARK: The network

    var canUseNetwork: Bool { isNetworkEnabled }
    /// Batches without an answer that were sent or are sent next.
    var outstandingWriteCount: Int { pipeline.count }

    func enableNetwork() {
        isNetworkEnabled = true
        if isPaused { return onlineState.update(.offline) }
        if shouldStartWatchStream {
            startWatchStream()
        } else {
            onlineState.update(.unknown)
            awaitWatchStream()
        }
        fillWritePipeline()
    }

    func disableNetwork() {
        isNetworkEnabled = false
        stopStreams()
        onlineState.update(.offline)
    }

    /// The cache cannot be written. The client later requests the server's changes again, from the state of the cache.
    /// It waits for the answers to writes in flight, so that they are not applied twice; see `CachePause`.
    func pause() {
        isPaused = true
        watchStream.stop()
        aggregator = nil
        onlineState.update(.offline)
    }

    func resume() {
        isPaused = false
        if isNetworkEnabled { enableNetwork() }
    }

    func shutDown() {
        isNetworkEnabled = false
        stopStreams()
        onlineState.update(.unknown)
    }

    /// The user or the network changed: the state of the streams is not valid.
    func restartForNewCredentials() { restart() }
    func restartForNewNetwork() { restart() }

    private func restart() {
        guard isNetworkEnabled else { return }
        isNetworkEnabled = false
        stopStreams()
        onlineState.update(.unknown)
        watchStream.inhibitBackoff()
        writeStream.inhibitBackoff()
        enableNetwork()
    }

    /// Writes remain in the queue.
    private func stopStreams() {
        watchStream.stop()
        writeStream.stop()
        pipeline = []
        aggregator = nil
    }

    // MARK: Listening

    func listen(to data: TargetData) {
        guard listenTargets[data.targetID] == nil else { return }
        listenTargets[data.targetID] = data
        if shouldStartWatchStream {
            startWatchStream()
        } else if watchStream.isOpen {
            if isCautious { sendTargets() } else { sendWatch(data) }
        }
        awaitWatchStream()
    }

    /// The stream may be waiting for a token, or for its next attempt, since before the listeners of now.
    private func awaitWatchStream() {
        if mayUseNetwork, !listenTargets.isEmpty { onlineState.watchStreamIsAwaited() }
    }

    func stopListening(to targetID: Int32) {
        guard listenTargets.removeValue(forKey: targetID) != nil else { return }
        if watchStream.isOpen, sentTargets.remove(targetID) != nil {
            // The server may still end the stream because of its request.
            sendUnwatch(targetID)
            if isCautious { sendTargets() }
        }
        guard listenTargets.isEmpty else { return }
        if watchStream.isOpen {
            watchStream.markIdle()
        } else if mayUseNetwork {
            onlineState.update(.unknown)
        }
    }

    private var shouldStartWatchStream: Bool {
        mayUseNetwork && !watchStream.isStarted && !listenTargets.isEmpty
    }

    private func startWatchStream() {
        aggregator = WatchChangeAggregator(
            database: database, clock: queue.clock, remoteKeys: { [unowned self] in engine.remoteKeys(of: $0) },
            targetData: { [unowned self] in listenTargets[$0] })
        watchStream.start()
        onlineState.watchStreamStarts()
    }

    /// Sends the targets that were not sent yet.
    private func sendTargets() {
        for targetID in listenTargets.keys.sorted() where !sentTargets.contains(targetID) {
            if isCautious, !loadingTargets.isEmpty { return }
            if let data = listenTargets[targetID] { sendWatch(data) }
        }
        if loadingTargets.isEmpty { isCautious = false }
    }

    private func sendWatch(_ data: TargetData) {
        sentTargets.insert(data.targetID)
        loadingTargets.insert(data.targetID)
        aggregator?.requestSent(data.targetID)
        var data = data
        data.expectedCount = Int32(clamping: engine.remoteKeys(of: data.targetID).count)
        var request = ListenRequest(database: database.string, addTarget: targetSerializer.message(data))
        if let label = TargetSerializer.label(data.purpose) {
            request.labels.set(TargetSerializer.labelKey, label)
        }
        watchStream.send(request)
    }

    private func sendUnwatch(_ targetID: Int32) {
        aggregator?.requestSent(targetID)
        watchStream.send(ListenRequest(database: database.string, removeTarget: targetID))
    }

    private func watchStreamOpened() {
        sendTargets()
        // The last listener may have been removed while the stream was opened.
        if listenTargets.isEmpty { watchStream.markIdle() }
    }

    private func watchStreamClosed(_ status: Status) {
        aggregator = nil
        let suspects = loadingTargets
        sentTargets = []
        loadingTargets = []
        if status.code == .invalidArgument || status.code == .outOfRange {
            // Every attempt would fail in the same way. The target that was sent alone is the cause.
            if isCautious, suspects.count == 1, let targetID = suspects.first {
                watchStream.inhibitBackoff()
                reject(targetID, status)
            } else {
                isCautious = true
            }
        }
        if shouldStartWatchStream {
            onlineState.watchStreamFailed(status)
            startWatchStream()
        } else {
            onlineState.update(.unknown)
        }
    }

    private func take(_ response: ListenResponse) {
        do throws(Status) {
            let change = try WatchChange(response, database: database)
            // Not after a message that cannot be read: it would arrive again at once, repeatedly, also behind others.
            if !isWatchUnreadable || watchStream.state == .healthy {
                isWatchUnreadable = false
                watchStream.resetBackoff()
            }
            if let change { take(change) }
        } catch {
            isWatchUnreadable = true
            // No request is the cause.
            watchStream.fail(.internalError("The server's message cannot be read: \(error.message)"))
        }
    }

    private func take(_ change: WatchChange) {
        onlineState.update(.online)
        switch change {
        case .document(let change): aggregator?.take(change)
        case .filter(let filter): aggregator?.take(filter)
        case .target(let change):
            if change.kind == .removed, let cause = change.cause {
                for targetID in change.targetIDs { reject(targetID, cause) }
                return
            }
            noteLoaded(change)
            aggregator?.take(change)
            let version = change.snapshotVersion
            if version > .none, version >= localStore.lastRemoteSnapshotVersion { raiseSnapshot(version) }
        }
    }

    /// Sends the next target when the one that was sent alone is current or removed.
    private func noteLoaded(_ change: WatchChange.Target) {
        if loadingTargets.isEmpty { return }
        switch change.kind {
        case .current where change.targetIDs.isEmpty: loadingTargets = []
        case .current: loadingTargets.subtract(change.targetIDs)
        // A target that did not match is removed and sent again at once: it is loading again.
        case .removed: loadingTargets.subtract(change.targetIDs.filter { !sentTargets.contains($0) })
        case .noChange, .added, .reset: return
        }
        if isCautious { sendTargets() }
    }

    private func reject(_ targetID: Int32, _ cause: Status) {
        loadingTargets.remove(targetID)
        sentTargets.remove(targetID)
        defer { if isCautious, watchStream.isOpen { sendTargets() } }
        guard listenTargets.removeValue(forKey: targetID) != nil else { return }
        aggregator?.forget(targetID)
        engine.attempt { () throws(Status) in try engine.rejectListen(targetID, cause) }
        if listenTargets.isEmpty { watchStream.markIdle() }
    }

    private func raiseSnapshot(_ version: Timestamp) {
        guard let event = aggregator?.remoteEvent(at: version) else { return }
        var former: [Int32: TargetData] = [:]
        for targetID in Array(event.targetChanges.keys) + event.quietTargets {
            former[targetID] = listenTargets[targetID]
        }
        for (targetID, change) in event.targetChanges where !change.resumeToken.isEmpty {
            listenTargets[targetID]?.resumeToken = change.resumeToken
            listenTargets[targetID]?.snapshotVersion = version
        }
        for targetID in event.quietTargets {
            listenTargets[targetID]?.resumeToken = event.tokenOfQuietTargets
            listenTargets[targetID]?.snapshotVersion = version
        }
        for (targetID, purpose) in event.targetMismatches.sorted(by: { $0.key < $1.key }) {
            guard var data = listenTargets[targetID] else { continue }
            data.resumeToken = []
            data.snapshotVersion = .none
            data.lastLimboFreeVersion = .none
            listenTargets[targetID] = data
            sendUnwatch(targetID)
            data.purpose = purpose
            sendWatch(data)
        }
        do throws(Status) { try engine.apply(event) } catch {
            // The changes are sent again, from the state of the cache.
            for (targetID, data) in former where listenTargets[targetID] != nil { listenTargets[targetID] = data }
            engine.take(error)
        }
    }

    // MARK: Writing

    func fillWritePipeline() {
        engine.attempt { () throws(Status) in
            while mayUseNetwork, pipeline.count < Self.pipelineCountMax {
                let last = pipeline.last?.id ?? MutationBatch.unknownID
                guard let batch = try localStore.nextBatch(after: last) else {
                    if pipeline.isEmpty { writeStream.markIdle() }
                    break
                }
                if let damage = batch.damage {
                    // It must be the first of the queue.
                    if !pipeline.isEmpty { break }
                    try engine.reject(batch.id, damage)
                    continue
                }
                pipeline.append(batch)
                if writeStream.isOpen, isHandshakeDone { send(batch) }
            }
        }
        startWriteStreamIfNeeded()
    }

    private func startWriteStreamIfNeeded() {
        guard mayUseNetwork, !writeStream.isStarted, !pipeline.isEmpty else { return }
        isHandshakeDone = false
        hasResponseAfterHandshake = false
        writeStream.start()
    }

    private func send(_ batch: MutationBatch) {
        var request = WriteRequest(
            writes: batch.mutations.map { mutationSerializer.message($0) }, streamToken: streamToken)
        if isStreamResumable {
            request.labels.set(Self.batchLabel, "\(batch.id) \(batch.localWriteTime.microseconds)")
        }
        writeStream.send(request)
    }

    /// Names the stream of the previous connection, so that the server recognises the writes that it has applied.
    private func writeStreamOpened() {
        var request = WriteRequest(database: database.string)
        do throws(Status) {
            let stream = try localStore.stream()
            isStreamResumed = !stream.id.isEmpty
            if isStreamResumed {
                request.streamId = stream.id
                request.streamToken = stream.token
            } else if takesLabels {
                request.labels.set(Self.resumableLabel, "true")
            }
        } catch {
            return endWriteStream(because: error)
        }
        writeStream.send(request)
    }

    private static let resumableLabel = "hearth-resumable"
    /// Names a batch, so that the server does not confuse a write with an equal one that the cache lost in a power
    /// failure.
    private static let batchLabel = "hearth-batch"
    /// The prefix of the ids of streams that can be resumed. Google's service has none.
    private static let resumablePrefix = "hearth-"

    /// The cache cannot be used.
    private func endWriteStream(because error: Status) {
        engine.take(error)
        writeStream.fail(.unavailable("The cache cannot be used: \(error.message)"))
    }

    /// The server returns the id of a new stream, and none when it resumes the named stream.
    private func takeHandshake(_ response: WriteResponse) {
        if !response.streamId.isEmpty {
            if isStreamResumed { warnOfRepetition() }
            let isResumable = response.streamId.hasPrefix(Self.resumablePrefix)
            let stream = isResumable ? StreamResumption(id: response.streamId, token: streamToken) : StreamResumption()
            do throws(Status) {
                if try localStore.stream() != stream { try localStore.setStream(stream) }
            } catch {
                return endWriteStream(because: error)
            }
            isStreamResumable = isResumable
        } else {
            isStreamResumable = isStreamResumed
        }
        isHandshakeDone = true
        onlineState.writeStreamOpened()
        for batch in pipeline { send(batch) }
    }

    private func take(_ response: WriteResponse) {
        streamToken = response.streamToken
        guard isHandshakeDone else { return takeHandshake(response) }
        do throws(Status) {
            guard let batch = pipeline.first else { throw .internalError("An answer without a request.") }
            let result = try batchResult(response, of: batch)
            // Not after an answer that is wrong: the write would be sent again at once, repeatedly.
            if !hasResponseAfterHandshake {
                hasResponseAfterHandshake = true
                writeStream.resetBackoff()
            }
            pipeline.removeFirst()
            engine.attempt { () throws(Status) in try engine.acknowledge(result) }
            fillWritePipeline()
        } catch {
            writeStream.fail(error)
        }
    }

    private func batchResult(_ response: WriteResponse, of batch: MutationBatch) throws(Status) -> BatchResult {
        guard let commitTime = response.commitTime, response.writeResults.count == batch.mutations.count else {
            throw .internalError(
                "An answer with \(response.writeResults.count) results to \(batch.mutations.count) writes.")
        }
        let commitVersion = try commitTime.timestamp()
        var results: [MutationResult] = []
        for (mutation, result) in zip(batch.mutations, response.writeResults) {
            guard result.transformResults.count == mutation.transforms.count else {
                throw .internalError(
                    "An answer with \(result.transformResults.count) transform results to "
                        + "\(mutation.transforms.count) transforms of \(mutation.key.string).")
            }
            results.append(
                MutationResult(
                    version: try result.updateTime?.timestamp() ?? commitVersion,
                    transformResults: result.transformResults))
        }
        return BatchResult(
            batch: batch, commitVersion: commitVersion, results: results,
            streamToken: isStreamResumable ? response.streamToken : [])
    }

    private func writeStreamClosed(_ status: Status) {
        if status.code != .ok, !pipeline.isEmpty {
            if isHandshakeDone { writeFailed(status) } else { handshakeFailed(status) }
        }
        startWriteStreamIfNeeded()
    }

    /// The server may reject the stream or the label: it is another server, or it cannot read its stored answers.
    private func handshakeFailed(_ status: Status) {
        switch status.code {
        // Not `UNIMPLEMENTED`: a proxy without a route to the server answers with it.
        case .invalidArgument, .failedPrecondition, .outOfRange, .aborted, .dataLoss, .notFound, .alreadyExists:
            if isStreamResumed { warnOfRepetition() }
            if !isStreamResumed, status.code == .invalidArgument { takesLabels = false }
            engine.attempt { () throws(Status) in try forgetStream() }
        default: onlineState.writeStreamFailed(status)
        }
    }

    private func warnOfRepetition() {
        engine.onWarning(
            "The server cannot resume the stream of writes. Those that have no answer are sent again, "
                + "and may be made twice.")
    }

    private func forgetStream() throws(Status) {
        if try !localStore.stream().id.isEmpty { try localStore.setStream(StreamResumption()) }
    }

    private func writeFailed(_ status: Status) {
        // Whatever the cause (a transaction's lock, contention, or other writes under these numbers, which the cache
        // lost): the server has applied no write of the pipeline.
        if status.code == .aborted { engine.attempt { () throws(Status) in try forgetStream() } }
        guard status.code.isPermanentForWrites, let batch = pipeline.first else { return }
        pipeline.removeFirst()
        // The write caused the failure, not the connection.
        writeStream.inhibitBackoff()
        engine.attempt { () throws(Status) in try engine.reject(batch.id, status) }
        fillWritePipeline()
    }
}
