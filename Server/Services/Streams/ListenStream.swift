import HearthModel
import HearthNetwork
import HearthStorage
import HearthWire

/// One Listen stream: many targets, and snapshots in which all of them show one version.
///
/// Requests are worked off in order. While one target is loaded, commits that concern the others are kept: a boundary
/// speaks for the whole stream. The same holds while the client takes nothing: then the net effect of many commits is
/// sent as one snapshot, and when even that grows too large, the client is told to forget all and gets everything anew.
/// Source: google.firestore.v1.Firestore.Listen.
///
/// `@unchecked Sendable`: belongs to the call's loop.
final class ListenStream: @unchecked Sendable {
    private enum Job {
        case add(TargetMessage, sizeBytes: Int)
        case remove(Int32)
        /// Sends a target's whole result again.
        case reload(ListenTarget)
    }

    /// What a client knows of a target that is to be loaded.
    private enum Knowledge {
        case none
        /// Something, but not what: it is told to forget it.
        case unknown
        /// Everything up to a version, or up to a time.
        case version(Int64, isTime: Bool = false, expectedCount: Int?)
    }

    private let call: any StreamCall
    private let service: FirestoreService
    private var listeners: LoopListeners?
    private var names: DocumentNames?
    private var targets: [Int32: ListenTarget] = [:]
    private var jobs: [Job] = []
    /// Bytes of requests among the jobs.
    private var waitingBytes = 0
    private var nextAssignedID: Int32 = 1
    private var hasAssignedIDs = false

    private var pending = PendingChanges()
    private var windows: [ObjectIdentifier: ListenTarget] = [:]
    /// Windows are being moved for a snapshot that will be sent.
    private var isFlushing = false
    /// What comes after that.
    private var afterFlush: (() -> Void)?
    /// A target is being loaded, or is about to be.
    private var isLoading = false
    private weak var loading: ListenTarget?
    /// What is being loaded was there before.
    private var isReloading = false
    /// Targets that the client is to forget and get anew. Until all have come, it has no state of one version.
    private var reloadsPending = 0
    /// The boundary that waits for them.
    private var owedBoundary: (version: Int64, readTime: Timestamp)?
    /// Targets that end with the next boundary.
    private var ending: [ListenTarget] = []
    private var hasRoom = true
    private var lastReadTime = Timestamp(microseconds: 0)
    private var heartbeat: Timer?
    private var expiry: TokenExpiry?

    init(_ call: any StreamCall, _ service: FirestoreService) {
        self.call = call
        self.service = service
        call.onMessage = { [self] in receive($0) }
        // The client says that it is done: the only way in which a stream ends well.
        call.onHalfClose = { [self] in end(.ok) }
        call.onCancel = { [self] in leave() }
        call.onWritable = { [self] in
            hasRoom = true
            proceed()
        }
        service.streams.add(call) { [weak self] status in
            guard let self else { return }
            self.call.loop.execute { [weak self] in self?.end(status) }
        }
        expiry = TokenExpiry(of: call) { [weak self] in self?.end($0) }
    }

    // MARK: Requests

    private func receive(_ bytes: [UInt8]) {
        do throws(Status) {
            let request: ListenRequest
            switch call.format {
            case .protobuf: request = try ListenRequest(protobuf: bytes)
            case .json: request = try ListenRequest(json: bytes, at: "")
            }
            try join(request.database)
            if let target = request.addTarget {
                jobs.append(.add(target, sizeBytes: bytes.count))
                waitingBytes += bytes.count
            } else if let id = request.removeTarget {
                jobs.append(.remove(id))
            } else {
                throw .invalidArgument("A ListenRequest must add or remove a target.")
            }
            if isFull { call.pauseReading() }
            proceed()
        } catch {
            end(error)
        }
    }

    private func join(_ name: String) throws(Status) {
        if let listeners {
            if !name.isEmpty, try DatabaseName(parsing: name) != listeners.database.name {
                throw .invalidArgument("A Listen stream is of one database, \(listeners.database.name).")
            }
            return
        }
        if name.isEmpty { throw .invalidArgument("'database' must be set on the first request of a Listen stream.") }
        let database = try service.database(try DatabaseName(parsing: name), for: call.identity)
        names = DocumentNames(database.name)
        listeners = service.listeners.join(self, database, call.loop)
        scheduleHeartbeat()
    }

    /// No more is read while so much waits for targets that are loaded.
    private var isFull: Bool {
        jobs.count >= Limits.streamRequestsWaitingMax + targets.count
            || waitingBytes >= Limits.streamRequestsWaitingBytesMax
    }

    // MARK: Progress

    /// Does what can be done now.
    func proceed() {
        while !call.isFinished, !isLoading, !isFlushing, hasRoom {
            do throws(Status) {
                payBoundary()
                flush { [self] in proceed() }
                if isFlushing || call.isFinished || jobs.isEmpty { return }
                let job = jobs.removeFirst()
                if case .add(_, let sizeBytes) = job { waitingBytes -= sizeBytes }
                if !isFull { call.resumeReading() }
                switch job {
                case .add(let message, _): try add(message)
                case .remove(let id): remove(id, cause: nil)
                case .reload(let target):
                    isReloading = true
                    if targets[target.id] === target { load(target, .unknown) } else { finishLoad() }
                }
            } catch {
                end(error)
            }
        }
    }

    private func add(_ message: TargetMessage) throws(Status) {
        guard let listeners else { return }
        let id = try id(for: message)
        if targets[id] != nil {
            return refuse(id, Status(.alreadyExists, "Target ID already exists: \(id)"))
        }
        let target: ListenTarget
        let knowledge: Knowledge
        do throws(Status) {
            if targets.count >= Limits.listenTargetsMax {
                throw .resourceExhausted("A Listen stream has at most \(Limits.listenTargetsMax) targets.")
            }
            target = ListenTarget(
                id: id, kind: try kind(message, listeners), once: message.once, stream: self)
            knowledge = try self.knowledge(message, listeners.database)
        } catch {
            return refuse(id, error)
        }
        try listeners.add(target)
        targets[id] = target
        load(target, knowledge, isNew: true)
    }

    /// - Throws: INVALID_ARGUMENT for a read time in the future.
    private func knowledge(_ message: TargetMessage, _ database: Database) throws(Status) -> Knowledge {
        let expectedCount = message.expectedCount.map(Int.init)
        if let time = message.readTime {
            let time = try time.timestamp()
            if time > (try database.view().readTime) {
                throw .invalidArgument("The requested 'read_time' cannot be in the future.")
            }
            return .version(time.microseconds, isTime: true, expectedCount: expectedCount)
        }
        guard let bytes = message.resumeToken, !bytes.isEmpty else { return .none }
        guard let token = ResumeToken(bytes),
            // Before the first commit all histories are the same.
            token.incarnation == database.incarnation || token.incarnation == 0 && token.version == 0
        else { return .unknown }
        return .version(token.version, expectedCount: expectedCount)
    }

    private func id(for message: TargetMessage) throws(Status) -> Int32 {
        if message.targetId < 0 { throw .invalidArgument("target_id must not be negative: \(message.targetId).") }
        if message.targetId > 0 {
            if hasAssignedIDs {
                throw .invalidArgument("Either all targets of a stream have an id from the client, or none.")
            }
            return message.targetId
        }
        hasAssignedIDs = true
        while targets[nextAssignedID] != nil { nextAssignedID += 1 }
        defer { nextAssignedID += 1 }
        return nextAssignedID
    }

    private func kind(_ message: TargetMessage, _ listeners: LoopListeners) throws(Status) -> ListenTarget.Kind {
        let database = listeners.database.name
        if let query = message.query {
            return .query(
                try listeners.query(query.protobuf()) { () throws(Status) in try Self.live(query, database) })
        }
        guard let documents = message.documents else {
            throw .invalidArgument("A target must have a query or documents.")
        }
        if documents.documents.count > Limits.listenDocumentsMax {
            throw .invalidArgument("A target names at most \(Limits.listenDocumentsMax) documents.")
        }
        var keys: Set<[UInt8]> = []
        for name in documents.documents {
            let name = try ResourceName(document: name)
            if name.database != database { throw .invalidArgument("The document is of another database.") }
            keys.insert(DocumentKey.encode(name.path))
        }
        return .documents(keys.sorted { UTF8Order.compare($0, $1) < 0 })
    }

    private static func live(
        _ message: TargetMessage.QueryTarget, _ database: DatabaseName
    ) throws(Status) -> LiveQuery {
        let parent = try ResourceName(parent: message.parent)
        if parent.database != database { throw .invalidArgument("The query is of another database.") }
        guard let structured = message.structuredQuery else {
            throw .invalidArgument("'structured_query' must be set on a query target.")
        }
        let query = try structured.query(parent: parent)
        if query.findNearest != nil { throw .invalidArgument("A query target can't search for neighbours.") }
        return LiveQuery(try NormalizedQuery(query))
    }

    private func refuse(_ id: Int32, _ status: Status) {
        send(
            TargetChangeMessage(
                targetChangeType: .remove, targetIds: [id],
                cause: StatusMessage(code: Int32(status.code.rawValue), message: status.message)))
    }

    private func remove(_ id: Int32, cause: Status?) {
        if let target = targets.removeValue(forKey: id) {
            listeners?.remove(target)
            windows[ObjectIdentifier(target)] = nil
            pending.forget(target)
        }
        if let cause {
            refuse(id, cause)
        } else {
            send(TargetChangeMessage(targetChangeType: .remove, targetIds: [id]))
        }
    }

    // MARK: Loading

    /// Sends what a target's client doesn't know as of one version, then a boundary.
    private func load(_ target: ListenTarget, _ knowledge: Knowledge, isNew: Bool = false) {
        isLoading = true
        loading = target
        target.since = .max
        target.window = [:]
        listeners?.settle { [weak self] version in self?.load(target, at: version, knowledge, isNew: isNew) }
    }

    private func load(_ target: ListenTarget, at version: Int64, _ knowledge: Knowledge, isNew: Bool) {
        guard !call.isFinished, listeners != nil else { return }
        target.since = version
        // The others come to the same version first.
        flush { [self] in begin(target, at: version, knowledge, isNew: isNew) }
        if !isFlushing { begin(target, at: version, knowledge, isNew: isNew) }
    }

    private func begin(_ target: ListenTarget, at version: Int64, _ knowledge: Knowledge, isNew: Bool) {
        guard !call.isFinished, let database = listeners?.database else { return }
        do throws(Status) {
            // Only now: a client takes a boundary to speak for every target that it knows to be added.
            if isNew { send(TargetChangeMessage(targetChangeType: .add, targetIds: [target.id])) }
            let view = try database.view(atVersion: version)
            do throws(Status) {
                try judge(target, view)
            } catch {
                if error.code != .permissionDenied { throw error }
                return refused(target, error)
            }
            // What waits for the end holds the time and not the view, which keeps a snapshot open.
            let readTime = view.readTime
            switch knowledge {
            case .none: break
            case .version(let known, let isTime, let expectedCount) where isTime || known <= version:
                if let past = try past(min(known, version), database, view) {
                    return resume(target, at: version, view, since: past, expectedCount)
                }
                fallthrough
            case .unknown, .version: send(TargetChangeMessage(targetChangeType: .reset, targetIds: [target.id]))
            }
            switch target.kind {
            case .documents(let keys):
                for key in keys { try send(view.document(key: key), key, target, readTime) }
                loaded(target, version, readTime)
            case .query(let shared):
                let source: ListenLoad
                do throws(Status) {
                    source = try ListenLoad(
                        shared.live, view, of: database, target.id, target.projection,
                        requireIndexes: service.options.requireIndexes,
                        format: call.format, cancellation: call.cancellation)
                } catch {
                    return refused(target, error)
                }
                run(source, of: target) { [self] in
                    target.window = source.window
                    let count = ResultCounts.Entry(version: version, count: source.count)
                    service.resultCounts.note(count, database, shared.text)
                    loaded(target, version, readTime)
                }
            }
        } catch {
            end(error)
        }
    }

    // MARK: Access

    /// Asks whether the stream's client may know what a target shows, and to be told when that may have changed.
    /// - Throws: PERMISSION_DENIED.
    private func judge(_ target: ListenTarget, _ view: ReadView) throws(Status) {
        guard let listeners else { return }
        let name = listeners.database.name
        var dependencies: [[UInt8]]
        switch target.kind {
        case .query(let shared):
            let paths = try service.access.list(shared.live.query.query, call.identity, view)
            dependencies = paths.map { DocumentKey.encode($0) }
        case .documents(let keys):
            guard service.access.isJudged(call.identity, name) else { return }
            let paths = keys.compactMap { DocumentKey.decode($0) }
            dependencies = try service.access.get(paths, call.identity, name, view).map { DocumentKey.encode($0) }
            // What a document says may decide who reads it.
            dependencies += keys
        }
        if dependencies == target.dependencies { return }
        // What happened between the judgement and now nobody would tell.
        if try listeners.depend(target, on: dependencies) > view.version { target.isToBeJudged = true }
    }

    /// Gives a target up that its client may no longer see.
    func judgeAgain(_ target: ListenTarget) {
        guard targets[target.id] === target, let listeners, !call.isFinished else { return }
        // One that is being loaded was allowed at its version; the answer waits until that is told.
        target.isToBeJudged = target === loading
        // One that waits to be loaded is judged then.
        if target.isToBeJudged || target.since == .max { return }
        do throws(Status) {
            // As things are now, which is never before what the stream will tell next.
            try judge(target, try listeners.database.view())
            if target.isToBeJudged { call.loop.execute { [weak self] in self?.judgeAgain(target) } }
        } catch {
            if error.code == .permissionDenied { return remove(target.id, cause: error) }
            end(error.code == .resourceExhausted ? error : Status(.unavailable, error.message))
        }
    }

    /// The rules have changed.
    func judgeAll() {
        for target in targets.values { judgeAgain(target) }
        proceed()
    }

    /// The state that a client knows; nil when the history doesn't go back so far.
    private func past(_ version: Int64, _ database: Database, _ view: ReadView) throws(Status) -> ReadView? {
        guard try view.reaches(version) else { return nil }
        return try database.view(atVersion: version)
    }

    private func resume(
        _ target: ListenTarget, at version: Int64, _ view: ReadView, since past: ReadView, _ expectedCount: Int?
    ) {
        guard let database = listeners?.database else { return }
        let readTime = view.readTime
        let source = ListenResume(
            target, view, since: past, database, service.resultCounts, expectedCount: expectedCount,
            format: call.format,
            cancellation: call.cancellation)
        run(source, of: target) { [self] in
            if source.isTooOld { return load(target, .unknown) }
            target.window = source.window
            loaded(target, version, readTime)
        }
    }

    private func run(_ source: any MessageSource, of target: ListenTarget, completion: @escaping () -> Void) {
        MessageStream(source, to: call, pool: service.pool) { [self] status in
            // A call that is over has let go of what holds it, and must not be given more.
            if call.isFinished { return }
            call.onWritable = { [self] in
                hasRoom = true
                proceed()
            }
            // A query that asks for too much would do so again; what else fails may succeed on a new stream.
            if status.code == .resourceExhausted { return refused(target, status) }
            if status.code != .ok { return end(Status(.unavailable, status.message)) }
            completion()
        }.start()
    }

    /// Gives a target up whose result can't be had, and goes on with the others.
    private func refused(_ target: ListenTarget, _ status: Status) {
        remove(target.id, cause: status)
        finishLoad()
        proceed()
    }

    private func finishLoad() {
        isLoading = false
        loading = nil
        guard isReloading else { return }
        isReloading = false
        reloadsPending -= 1
    }

    /// Sends the boundary that waits for targets to be complete, when they are. Documents that are asked for one by one, in
    /// requests that have come already, get one together: a client goes over all its targets at each.
    private func payBoundary() {
        guard !call.isFinished, !isLoading, !isFlushing, reloadsPending == 0, let owed = owedBoundary else { return }
        if hasRoom, case .add(let message, _)? = jobs.first, message.documents != nil { return }
        boundary(version: owed.version, owed.readTime)
    }

    private func loaded(_ target: ListenTarget, _ version: Int64, _ readTime: Timestamp) {
        send(
            TargetChangeMessage(
                targetChangeType: .current, targetIds: [target.id], resumeToken: token(version),
                readTime: TimestampMessage(readTime)))
        if target.once { ending.append(target) }
        owedBoundary = (version, readTime)
        finishLoad()
        if target.isToBeJudged { judgeAgain(target) }
        proceed()
        // It goes out now even when the client takes nothing else.
        payBoundary()
    }

    private func send(
        _ document: StoredDocument?, _ key: [UInt8], _ target: ListenTarget, _ readTime: Timestamp
    ) throws(Status) {
        if let document {
            try sendChange(document, key, [target.id], removed: [], target.projection)
        } else {
            send(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: try name(key), removedTargetIds: [target.id], readTime: TimestampMessage(readTime))))
        }
    }

    // MARK: Changes

    /// Notes what a commit did to a document that concerns a target; `proceed` sends it.
    func note(_ key: [UInt8], _ target: ListenTarget, was: Bool, now: Bool, _ after: StoredDocument?) {
        pending.note(key, target, was: was, now: now, after)
        if pending.sizeBytes > Limits.listenPendingBytesMax { startOver() }
    }

    func noteWindow(_ target: ListenTarget) { windows[ObjectIdentifier(target)] = target }

    /// Forgets what is known of the client's state: `proceed` sends everything anew.
    func startOver() {
        clearPending()
        let known = targets.values.filter { $0.since != .max }.sorted { $0.id < $1.id }
        for target in known { target.since = .max }
        jobs = known.map { .reload($0) } + jobs
        reloadsPending += known.count
    }

    private func clearPending() {
        pending = PendingChanges()
        windows = [:]
    }

    /// Sends what the commits since the last boundary changed, and a boundary: now, or, when a worker has to move windows
    /// first, later. Meanwhile `isFlushing` is true, and at the end `later` is called.
    private func flush(_ later: @escaping () -> Void) {
        guard let listeners, !pending.isEmpty || !windows.isEmpty else { return }
        let version = listeners.seen
        let moved = windows.values.filter { $0.since != .max }.sorted { $0.id < $1.id }
        let snapshot = PendingSnapshot(version: version, pending, windowsMissing: moved.count)
        clearPending()
        if moved.isEmpty { return send(snapshot) }
        isFlushing = true
        for target in moved {
            guard case .query(let shared) = target.kind else { continue }
            shared.results(at: version, in: listeners, service.pool) { [self] result in
                windowMoved(target, result, snapshot)
            }
        }
        // An error may have ended the stream, which must not be given what holds it again.
        if isFlushing, !call.isFinished { afterFlush = later }
    }

    private func windowMoved(
        _ target: ListenTarget, _ result: Result<WindowResult, Status>, _ snapshot: PendingSnapshot
    ) {
        if call.isFinished { return }
        do throws(Status) {
            try move(target, to: try result.get(), snapshot)
        } catch {
            // A new stream may succeed.
            return end(error.code == .resourceExhausted ? error : Status(.unavailable, error.message))
        }
        snapshot.windowsMissing -= 1
        guard snapshot.windowsMissing == 0 else { return }
        isFlushing = false
        send(snapshot)
        let later = afterFlush
        afterFlush = nil
        later?()
    }

    /// Notes how a window differs from what the client has of it.
    private func move(_ target: ListenTarget, to result: WindowResult, _ snapshot: PendingSnapshot) throws(Status) {
        // It was given up meanwhile, or is sent anew.
        guard targets[target.id] === target, target.since != .max else { return }
        for document in result.documents {
            let known = target.window[document.key]
            if known == document.document.updateVersion { continue }
            snapshot.changes.note(document.key, target, was: known != nil, now: true, document.document)
        }
        let left = target.window.keys.filter { result.versions[$0] == nil }
        for key in left.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            snapshot.changes.note(key, target, was: true, now: false, try result.view.document(key: key))
        }
        target.window = result.versions
    }

    private func send(_ snapshot: PendingSnapshot) {
        do throws(Status) {
            var hasChanged = false
            for (key, net) in snapshot.changes.changes where try send(net, key, snapshot.version) { hasChanged = true }
            if hasChanged { boundary(version: snapshot.version, Timestamp(microseconds: snapshot.version)) }
        } catch {
            end(error)
        }
    }

    private func send(_ net: PendingChanges.Net, _ key: [UInt8], _ version: Int64) throws(Status) -> Bool {
        let removed = net.targets.filter { $0.was && !$0.now }.map(\.target.id)
        guard let after = net.after else {
            if removed.isEmpty { return false }
            send(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: try name(key), removedTargetIds: removed,
                        readTime: TimestampMessage(Timestamp(microseconds: version)))))
            return true
        }
        let matching = net.targets.filter(\.now).map(\.target)
        if matching.isEmpty, removed.isEmpty { return false }
        let plain = matching.filter { $0.projection == nil }.map(\.id)
        if !plain.isEmpty || !removed.isEmpty { try sendChange(after, key, plain, removed: removed, nil) }
        for target in matching where target.projection != nil {
            try sendChange(after, key, [target.id], removed: [], target.projection)
        }
        return true
    }

    private func token(_ version: Int64) -> [UInt8] {
        ResumeToken(incarnation: listeners?.database.incarnation ?? 0, version: version).bytes
    }

    private func boundary(version: Int64, _ readTime: Timestamp) {
        if reloadsPending > 0 {
            owedBoundary = (version, readTime)
            return
        }
        owedBoundary = nil
        lastReadTime = max(lastReadTime, readTime)
        guard let listeners else { return }
        let key = ListenEncodings.Boundary(version: version, readTime: lastReadTime, isJSON: call.format.isJSON)
        send(
            listeners.encodings.boundary(key) {
                let change = TargetChangeMessage(
                    resumeToken: token(version), readTime: TimestampMessage(lastReadTime))
                return call.format.encode(ListenResponse(targetChange: change))
            })
        let ended = ending.filter { targets[$0.id] === $0 && $0.since != .max }
        ending = []
        for target in ended { remove(target.id, cause: nil) }
    }

    // MARK: Answers

    private func name(_ key: [UInt8]) throws(Status) -> String { try names?.name(key: key) ?? "" }

    /// - Parameter projection: nil for the whole document, which other streams may send as well.
    private func sendChange(
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

    private func send(_ change: TargetChangeMessage) { send(ListenResponse(targetChange: change)) }

    private func send(_ response: ListenResponse) { send(call.format.encode(response)) }

    private func send(_ message: [UInt8]) {
        if !call.send(message) { hasRoom = false }
    }

    // MARK: For tests

    /// Nothing will be said until something happens.
    var isIdle: Bool { !isLoading && !isFlushing && jobs.isEmpty && pending.isEmpty && windows.isEmpty }

    /// How many documents the targets should have.
    func resultCounts(_ view: ReadView) throws(Status) -> [Int32: Int] {
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
    private func scheduleHeartbeat() {
        heartbeat = call.loop.schedule(afterMilliseconds: Limits.listenHeartbeatSeconds * 1000) { [weak self] in
            guard let self else { return }
            self.beat()
            self.scheduleHeartbeat()
        }
    }

    private func beat() {
        listeners?.settle { [weak self] version in
            guard let self, !self.call.isFinished, !self.isLoading, !self.isFlushing, self.hasRoom,
                !self.targets.isEmpty,
                let database = self.listeners?.database
            else { return }
            self.flush { [weak self] in self?.proceed() }
            if self.isFlushing || self.call.isFinished { return }
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

    private func leave() {
        heartbeat?.cancel()
        heartbeat = nil
        expiry?.cancel()
        for target in targets.values { listeners?.remove(target) }
        targets = [:]
        jobs = []
        ending = []
        afterFlush = nil
        clearPending()
        service.streams.remove(call)
        if let listeners { service.listeners.leave(self, listeners, call.loop) }
        listeners = nil
    }
}
