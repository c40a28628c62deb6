import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// One Listen stream: many targets, and snapshots in which all of them show one version.
///
/// Requests are worked off in order. While one target is loaded, commits that concern the others are kept: a boundary
/// speaks for the whole stream. The same holds while the client takes nothing: then the net effect of many commits is
/// sent as one snapshot, and when even that grows too large, the client is told to forget all and gets everything anew.
/// Source: google.firestore.v1.Firestore.Listen.
///
/// `@unchecked Sendable`: belongs to the call's loop.
package final class ListenStream: @unchecked Sendable {
    enum Job {
        /// A request as it came: decoded, when its turn comes, it may be many times as large.
        case request([UInt8])
        /// - Parameter share: the memory of the request, when it is large.
        case add(TargetMessage, share: WorkingShare?)
        case remove(Int32)
        /// Sends a target's whole result again.
        case reload(ListenSubscription)
    }

    /// What a client knows of a target that is to be loaded.
    enum Knowledge {
        case none
        /// Something, but not what: it is told to forget it.
        case unknown
        /// Everything up to a version, or up to a time.
        case version(Int64, isTime: Bool = false, expectedCount: Int?)
    }

    let call: any StreamCall
    let service: FirestoreService
    var listeners: LoopSubscriptions?
    /// The database, while it is being opened.
    var joining: DatabaseName?
    var names: DocumentNames?
    var targets: [Int32: ListenSubscription] = [:]
    var jobs = Queue<Job>()
    /// Bytes of requests among the jobs, and what is counted of them.
    var waitingBytes = 0
    let held: MemoryReservation
    /// A worker decodes the request that is next.
    var isDecoding = false
    var nextAssignedID: Int32 = 1
    var hasAssignedIDs = false

    var pending = PendingChanges()
    /// Of changes that wait for the client.
    let waiting: MemoryReservation
    var windows: [ObjectIdentifier: ListenSubscription] = [:]
    /// Windows are being moved for a snapshot that will be sent.
    var isFlushing = false
    /// The snapshot, until all of it is sent.
    var flushing: PendingSnapshot?
    /// What comes after that.
    var afterFlush: (() -> Void)?
    /// Judgements that have to be made before anything more is told.
    var judgementsPending = 0
    /// A target is being loaded, or is about to be.
    var isLoading = false
    /// A later turn goes on with requests that wait.
    var isProceedScheduled = false
    weak var loading: ListenSubscription?
    /// Begins to load a target, when judgements have been made that come before.
    var deferredLoad: (() -> Void)?
    /// What is being loaded is sent.
    var sending: MessageStream?
    /// What is being loaded was there before.
    var isReloading = false
    /// Targets that the client is to forget and get anew. Until all have come, it has no state of one version.
    var reloadsPending = 0
    /// The boundary that waits for them.
    var owedBoundary: (version: Int64, readTime: Timestamp)?
    /// Targets that end with the next boundary.
    var ending: [ListenSubscription] = []
    var hasCapacity = true
    var lastReadTime = Timestamp(microseconds: 0)
    var heartbeat: Timer?
    var expiry: TokenExpiry?
    /// What rules see of the client, the same for clients that are the same to them.
    private(set) lazy var judgedIdentity = call.identity.asJudged

    package init(_ call: any StreamCall, _ service: FirestoreService) {
        self.call = call
        self.service = service
        waiting = service.memory.listenersWaiting.reservation(for: call.requester)
        held = service.memory.received.reservation(for: call.requester)
        call.onMessage = { [self] in receive($0) }
        // The client says that it is done: the only way in which a stream ends well.
        call.onHalfClose = { [self] in end(.ok) }
        call.onCancel = { [self] in leave() }
        call.onWritable = { [self] in
            hasCapacity = true
            proceed()
        }
        service.streams.add(call) { [weak self] status in
            guard let self else { return }
            self.call.loop.execute { [weak self] in self?.end(status) }
        }
        expiry = TokenExpiry(of: call) { [weak self] in self?.end($0) }
    }

    // MARK: Answers

    func name(_ key: [UInt8]) throws(Status) -> String { try names?.name(key: key) ?? "" }

    /// - Parameter projection: nil for the whole document, which other streams may send as well.
    func sendChange(
        _ document: StoredDocument, _ key: [UInt8], _ ids: [Int32], removed: [Int32], _ projection: Projection?
    ) throws(Status) {
        func encode() throws(Status) -> [UInt8] {
            let encoded = try FirestoreService.encoded(document, name: try name(key), projection)
            return try ListenLoad.change(encoded, ids, removed: removed, call.format)
        }
        guard projection == nil, let listeners, document.updateVersion == listeners.seen else {
            return send(try encode())
        }
        let shared = ListenEncodings.Key(document: key, ids: ids, removed: removed, isJSON: call.format.isJSON)
        send(try listeners.encodings.change(shared, encode))
    }

    func send(_ change: TargetChangeMessage) { send(ListenResponse(targetChange: change)) }

    func send(_ response: ListenResponse) { send(call.format.encode(response)) }

    func send(_ message: [UInt8]) {
        if !call.send(message) { hasCapacity = false }
    }

    // MARK: For tests

    /// Nothing will be said until something happens.
    package var isIdle: Bool {
        joining == nil && !isDecoding && !isLoading && !isFlushing && judgementsPending == 0 && jobs.isEmpty
            && pending.isEmpty
            && windows.isEmpty
    }

    /// How many documents the targets should have.
    package func resultCounts(_ view: ReadView) throws(Status) -> [Int32: Int] {
        var counts: [Int32: Int] = [:]
        for (id, target) in targets {
            var count = 0
            switch target.kind {
            case .documents(let keys): for key in keys where try view.document(key: key) != nil { count += 1 }
            case .query(let shared):
                let execution = try QueryExecution(shared.live.query, view: view)
                while try execution.next() != nil { count += 1 }
            }
            counts[id] = count
        }
        return counts
    }

    // MARK: The end

    /// A boundary when nothing else happened, so that the client's token doesn't age.
    func scheduleHeartbeat() {
        heartbeat = call.loop.schedule(afterMilliseconds: Limits.listenHeartbeatSeconds * 1000) { [weak self] in
            guard let self else { return }
            self.beat()
            self.scheduleHeartbeat()
        }
    }

    func beat() {
        listeners?.settle { [weak self] version in
            guard let self, !self.call.isFinished, !self.isLoading, !self.isFlushing, self.hasCapacity,
                !self.targets.isEmpty,
                let database = self.listeners?.database
            else { return }
            defer { self.countPending() }
            guard case .told = self.flush({ [weak self] in self?.proceed() }), !self.call.isFinished else { return }
            do throws(Status) {
                let view = try database.view()
                if view.version == version { self.boundary(version: version, view.readTime) }
            } catch {
                self.end(error)
            }
        }
    }

    func end(_ status: Status) {
        leave()
        call.finish(status)
    }

    func leave() {
        heartbeat?.cancel()
        heartbeat = nil
        expiry?.cancel()
        let known = Array(targets.values)
        targets = [:]
        jobs = Queue()
        waitingBytes = 0
        held.resize(to: 0)
        ending = []
        afterFlush = nil
        deferredLoad = nil
        sending?.cancel()
        sending = nil
        flushing = nil
        clearPending()
        waiting.resize(to: 0)
        service.streams.remove(call)
        if let listeners {
            listeners.remove(known, of: self)
            service.listeners.leave(self, listeners, call.loop)
        }
        listeners = nil
    }
}
