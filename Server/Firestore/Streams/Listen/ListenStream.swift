import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// One Listen stream: many targets, and snapshots in which all of them show one version.
///
/// Requests are handled in order. While one target is loaded, commits that concern the others wait, because a boundary
/// covers the whole stream. They also wait while the client takes nothing: then the net effect of many commits is sent
/// as one snapshot. When even that grows too large, the server resets the client's targets and sends everything anew.
/// Source: google.firestore.v1.Firestore.Listen.
///
/// `@unchecked Sendable`: belongs to the call's loop.
package final class ListenStream: @unchecked Sendable {
    enum Job {
        /// An encoded request: decoded, it may be many times as large, so it is decoded when it is the next one.
        case request([UInt8])
        /// - Parameter share: the memory of the request, when it is large.
        case add(TargetMessage, share: WorkingShare?)
        case remove(Int32)
        /// Sends a target's whole result again.
        case reload(ListenSubscription)
    }

    /// The client's knowledge of a target that is to be loaded.
    enum Knowledge {
        case none
        /// Something unknown: the server resets the target.
        case unknown
        /// Everything up to a version, or up to a time.
        case version(Int64, isTime: Bool = false, expectedCount: Int?)
    }

    let call: any StreamCall
    let service: FirestoreService
    var listeners: LoopSubscriptions?
    /// The database that is being opened.
    var joining: DatabaseName?
    var names: DocumentNames?
    var targets: [Int32: ListenSubscription] = [:]
    var jobs = Queue<Job>()
    /// Bytes of requests among the jobs, and the counted part of them.
    var waitingBytes = 0
    let held: MemoryReservation
    /// A worker decodes the next request.
    var isDecoding = false
    var nextAssignedID: Int32 = 1
    var hasAssignedIDs = false

    var pending = PendingChanges()
    /// Memory of changes that wait for the client.
    let waiting: MemoryReservation
    var windows: [ObjectIdentifier: ListenSubscription] = [:]
    /// Windows are being moved for a snapshot that will be sent.
    var isFlushing = false
    /// The snapshot that is being sent.
    var flushing: PendingSnapshot?
    /// Called after that.
    var afterFlush: (() -> Void)?
    /// Judgements that must end before anything else is sent.
    var judgementsPending = 0
    /// A target is being loaded, or is about to be.
    var isLoading = false
    /// A later tick continues with waiting requests.
    var isProceedScheduled = false
    weak var loading: ListenSubscription?
    /// Begins to load a target, after pending judgements.
    var deferredLoad: (() -> Void)?
    /// The results that are being loaded and sent.
    var sending: MessageStream?
    /// The target that is being loaded existed before.
    var isReloading = false
    /// Targets that the client resets and gets anew. Until all are sent, the client has no consistent snapshot.
    var reloadsPending = 0
    /// The boundary that waits for them.
    var pendingBoundary: (version: Int64, readTime: Timestamp)?
    /// Targets that end with the next boundary.
    var ending: [ListenSubscription] = []
    var hasCapacity = true
    var lastReadTime = Timestamp(microseconds: 0)
    var heartbeat: Timer?
    var expiry: TokenExpiry?
    /// The client's identity as rules see it; equal for clients that rules cannot distinguish.
    private(set) lazy var judgedIdentity = call.identity.asJudged

    package init(_ call: any StreamCall, _ service: FirestoreService) {
        self.call = call
        self.service = service
        waiting = service.memory.listenersWaiting.reservation(for: call.requester)
        held = service.memory.received.reservation(for: call.requester)
        call.onMessage = { [self] in receive($0) }
        // The client half-closes: the only case in which a stream ends with OK.
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

    /// Nothing will be sent until an event happens.
    package var isIdle: Bool {
        joining == nil && !isDecoding && !isLoading && !isFlushing && judgementsPending == 0 && jobs.isEmpty
            && pending.isEmpty
            && windows.isEmpty
    }

    /// The number of documents that the targets should have.
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

    /// Sends a boundary when nothing else happened, so that the client's token stays recent.
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
            guard case .upToDate = self.flush({ [weak self] in self?.proceed() }), !self.call.isFinished else { return }
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
