import HearthModel
import HearthNetwork
import HearthStorage
import HearthWire

/// What commits change of what targets show.
extension ListenStream {
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

    func clearPending() {
        pending = PendingChanges()
        windows = [:]
    }

    /// Sends what the commits since the last boundary changed, and a boundary: now, or, when a worker has to move windows
    /// first, later. Meanwhile `isFlushing` is true, and at the end `later` is called.
    func flush(_ later: @escaping () -> Void) {
        guard let listeners, !pending.isEmpty || !windows.isEmpty else { return }
        let version = listeners.seen
        let moved = windows.values.filter { $0.since != .max }.sorted { $0.id < $1.id }
        let snapshot = PendingSnapshot(version: version, pending, windowsMissing: moved.count)
        clearPending()
        if moved.isEmpty { return send(snapshot) }
        isFlushing = true
        for target in moved {
            guard case .query(let shared) = target.kind else { continue }
            shared.results(at: version, in: listeners, service.pool, for: call.requester) { [self] result in
                windowMoved(target, result, snapshot)
            }
        }
        // An error may have ended the stream, which must not be given what holds it again.
        if isFlushing, !call.isFinished { afterFlush = later }
    }

    func windowMoved(
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
    func move(_ target: ListenTarget, to result: WindowResult, _ snapshot: PendingSnapshot) throws(Status) {
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

    func send(_ snapshot: PendingSnapshot) {
        do throws(Status) {
            var hasChanged = false
            for (key, net) in snapshot.changes.changes where try send(net, key, snapshot.version) { hasChanged = true }
            if hasChanged { boundary(version: snapshot.version, Timestamp(microseconds: snapshot.version)) }
        } catch {
            end(error)
        }
    }

    func send(_ net: PendingChanges.Net, _ key: [UInt8], _ version: Int64) throws(Status) -> Bool {
        // A target may have been given up while windows were moved for this snapshot.
        let present = net.targets.filter { targets[$0.target.id] === $0.target }
        if present.isEmpty { return false }
        // Also of targets that it entered and left since: a client may show it, if the client itself wrote it.
        let left = present.filter { !$0.now }.map(\.target)
        let readTime = TimestampMessage(Timestamp(microseconds: version))
        guard let after = net.after else {
            if left.isEmpty { return false }
            send(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: try name(key), removedTargetIds: left.map(\.id), readTime: readTime)))
            return true
        }
        let showing = present.filter(\.now).map(\.target)
        let delivery = ListenDelivery(showing: showing, left: left, isJudged: !left.isEmpty && isJudged)
        for change in delivery.changes {
            try sendChange(after, key, change.ids, removed: change.removed, change.projection)
        }
        if !delivery.removedByName.isEmpty {
            send(try removal(key, delivery.removedByName, readTime))
        }
        return true
    }

    /// Whether rules decide what the stream's client reads.
    var isJudged: Bool {
        guard let listeners else { return true }
        return service.access.isJudged(call.identity, listeners.database.name)
    }

    /// Says that a document left targets, and nothing of what it holds now.
    private func removal(
        _ key: [UInt8], _ removed: [Int32], _ readTime: TimestampMessage
    ) throws(Status) -> ListenResponse {
        ListenResponse(
            documentRemove: DocumentRemoveMessage(
                document: try name(key), removedTargetIds: removed, readTime: readTime))
    }

    func token(_ version: Int64) -> [UInt8] {
        ResumeToken(incarnation: listeners?.database.incarnation ?? 0, version: version).bytes
    }

    func boundary(version: Int64, _ readTime: Timestamp) {
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
}
