import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire

/// How commits change the results of targets.
extension ListenStream {
    /// Notes how a commit changed a document that concerns a target; `proceed` sends it.
    func note(_ key: [UInt8], _ target: ListenSubscription, was: Bool, now: Bool, _ after: StoredDocument?) {
        pending.note(key, target, was: was, now: now, after)
        if pending.isTooLarge { startOver() }
    }

    func noteWindow(_ target: ListenSubscription) { windows[ObjectIdentifier(target)] = target }

    /// Forgets the client's state: `proceed` sends everything anew.
    func startOver() {
        clearPending()
        let known = targets.values.filter { $0.since != .max }.sorted { $0.id < $1.id }
        for target in known { target.since = .max }
        var all = Queue<Job>()
        for target in known { all.append(.reload(target)) }
        while let job = jobs.popFirst() { all.append(job) }
        jobs = all
        reloadsPending += known.count
    }

    /// Counts the changes that wait for the client. When they exceed the account's share, the client gets
    /// everything anew.
    func countPending() {
        let bytes = pending.heldBytes + (flushing?.changes.heldBytes ?? 0)
        if bytes == waiting.bytes || waiting.resize(to: bytes) { return }
        flushing?.forget()
        startOver()
        waiting.resize(to: 0)
    }

    func clearPending() {
        pending = PendingChanges()
        windows = [:]
    }

    enum Flushed {
        /// The client knows everything up to the version that the loop has seen.
        case upToDate
        /// The changes are being sent; `later` is called at the end.
        case underWay
        /// The changes wait for judgements; then the stream proceeds. Until then no boundary may be sent that covers
        /// the waiting changes.
        case deferred
    }

    /// Sends the changes since the last boundary, and a boundary: immediately, or later when a worker must move windows
    /// first. Until then `isFlushing` is true, and at the end `later` is called.
    @discardableResult
    func flush(_ later: @escaping () -> Void) -> Flushed {
        guard let listeners, !pending.isEmpty || !windows.isEmpty else { return .upToDate }
        // The judgement calls `proceed` at its end.
        if judgementsPending > 0 { return .deferred }
        if listeners.isUnsettled {
            listeners.proceedLater(self)
            return .deferred
        }
        let version = listeners.seen
        let moved = windows.values.filter { $0.since != .max }.sorted { $0.id < $1.id }
        let snapshot = PendingSnapshot(version: version, pending, moved)
        clearPending()
        isFlushing = true
        flushing = snapshot
        if moved.isEmpty {
            if send(snapshot) {
                isFlushing = false
                flushing = nil
                return .upToDate
            }
            if !call.isFinished { afterFlush = later }
            return .underWay
        }
        if moveWindows(snapshot) {
            isFlushing = false
            flushing = nil
            return .upToDate
        }
        // An error may have ended the stream. An ended stream must not hold a reference to itself again.
        if !call.isFinished { afterFlush = later }
        return .underWay
    }

    /// The most results that one tick of the loop finds for windows, and the most windows that workers search at a
    /// time.
    private static let windowResultsMax = 1500
    private static let windowsAtOnceMax = 16

    /// Moves windows to a snapshot's version: some of them now, the others in later ticks or when workers have found
    /// them. At the end it sends the snapshot.
    /// - Returns: whether the work is complete, or the stream has ended. Otherwise `finishFlush` is called at the end.
    private func moveWindows(_ snapshot: PendingSnapshot) -> Bool {
        guard let listeners, !call.isFinished else { return true }
        if snapshot.isMovingWindows { return false }
        snapshot.isMovingWindows = true
        var left = Self.windowResultsMax
        while left > 0, snapshot.windowsUnderWay < Self.windowsAtOnceMax, let target = snapshot.windows.popFirst() {
            guard case .query(let shared) = target.kind, targets[target.id] === target else { continue }
            if let known = target.window?.version,
                let changes = shared.changes(since: known, at: snapshot.version)
            {
                left -= Self.stepsOfWindow + changes.count
                windowMoved(target, snapshot) { () throws(Status) in try move(target, by: changes, snapshot) }
                if call.isFinished { return true }
                continue
            }
            snapshot.windowsUnderWay += 1
            shared.results(at: snapshot.version, in: listeners, service, for: call.requester) { [self] result in
                snapshot.windowsUnderWay -= 1
                left -= Self.stepsOfWindow + ((try? result.get())?.workCount ?? 0)
                windowMoved(target, snapshot) { () throws(Status) in
                    try move(target, to: try result.get(), snapshot)
                }
            }
            if call.isFinished { return true }
        }
        snapshot.isMovingWindows = false
        if snapshot.hasMovedWindows { return send(snapshot) }
        // Workers that are still searching call this function again.
        if left <= 0, snapshot.windowsUnderWay == 0 { moveWindowsLater(snapshot) }
        return false
    }

    private static let stepsOfWindow = 10

    private func moveWindowsLater(_ snapshot: PendingSnapshot) {
        if snapshot.willMoveWindows { return }
        snapshot.willMoveWindows = true
        call.loop.execute { [self] in
            snapshot.willMoveWindows = false
            if !call.isFinished, moveWindows(snapshot) { finishFlush() }
        }
    }

    private func windowMoved(
        _ target: ListenSubscription, _ snapshot: PendingSnapshot, _ move: () throws(Status) -> Void
    ) {
        if call.isFinished { return }
        do throws(Status) {
            // A target that was removed meanwhile has no result.
            if targets[target.id] === target { try move() }
        } catch {
            // A new stream may succeed.
            return end(error.code == .resourceExhausted ? error : Status(.unavailable, error.message))
        }
        // A running `moveWindows` continues on its own.
        if !snapshot.isMovingWindows { moveWindowsLater(snapshot) }
    }

    private func finishFlush() {
        isFlushing = false
        flushing = nil
        let later = afterFlush
        afterFlush = nil
        later?()
    }

    /// Notes how a window differs from the client's version of it.
    func move(_ target: ListenSubscription, to result: WindowResult, _ snapshot: PendingSnapshot) throws(Status) {
        // The target was removed meanwhile, or is sent anew.
        guard targets[target.id] === target, target.since != .max else { return }
        let window = target.window?.versions ?? [:]
        do throws(Status) {
            try target.window?.replace(with: result.versions, sizeBytes: result.sizeBytes)
            target.window?.version = result.version
        } catch {
            // The stream's other targets continue.
            return remove(target.id, cause: error)
        }
        for document in result.documents {
            let known = window[document.key]
            if known == document.updateVersion { continue }
            guard let found = try result.document(document) else { continue }
            snapshot.changes.note(document.key, target, was: known != nil, now: true, found)
            // Then everything is sent anew, at the client's speed.
            if snapshot.changes.isTooLarge {
                snapshot.forget()
                return startOver()
            }
        }
        let left = window.keys.filter { result.versions[$0] == nil }
        for key in left.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            snapshot.changes.note(key, target, was: true, now: false, try result.view.document(key: key))
        }
    }

    /// Like `move` above, when the documents that can differ are known.
    private func move(
        _ target: ListenSubscription, by changes: [(key: [UInt8], updateVersion: Int64?)], _ snapshot: PendingSnapshot
    ) throws(Status) {
        guard let listeners, let window = target.window, target.since != .max else { return }
        for (key, updateVersion) in changes {
            let known = window.versions[key]
            if known == updateVersion { continue }
            do throws(Status) {
                try window.change(key, to: updateVersion)
            } catch {
                // The stream's other targets continue.
                return remove(target.id, cause: error)
            }
            let document = try listeners.view(at: snapshot.version).document(key: key)
            snapshot.changes.note(key, target, was: known != nil, now: updateVersion != nil, document)
            if snapshot.changes.isTooLarge {
                snapshot.forget()
                return startOver()
            }
        }
        window.version = snapshot.version
    }

    /// The most targets and documents of a snapshot that one tick of the loop sends.
    private static let sendSteps = 20_000

    /// Sends a snapshot. The rest beyond `sendSteps` is sent in later ticks, which end with `finishFlush`.
    /// - Returns: whether everything is sent, or the stream has ended.
    private func send(_ snapshot: PendingSnapshot) -> Bool {
        var steps = Self.sendSteps
        do throws(Status) {
            while let (key, net) = snapshot.next() {
                steps -= 10 + net.targets.count
                if try send(net, key, snapshot.version) { snapshot.hasChanged = true }
                if call.isFinished { return true }
                guard steps < 0, !snapshot.isOver else { continue }
                call.loop.execute { [self] in
                    if !call.isFinished, send(snapshot) { finishFlush() }
                }
                return false
            }
            if snapshot.hasChanged {
                boundary(version: snapshot.version, Timestamp(microseconds: snapshot.version))
            }
        } catch {
            end(error)
        }
        return true
    }

    func send(_ net: PendingChanges.Net, _ key: [UInt8], _ version: Int64) throws(Status) -> Bool {
        // A target may have been removed while windows were moved for this snapshot.
        let present = net.targets.filter { targets[$0.target.id] === $0.target }
        if present.isEmpty { return false }
        // Also for targets that it entered and left since: a client may show it, if the client itself wrote it.
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
        let recipients = DocumentRecipients(showing: showing, left: left, isJudged: !left.isEmpty && isJudged)
        for change in recipients.changes {
            try sendChange(after, key, change.ids, removed: change.removed, change.projection)
        }
        if !recipients.removedByName.isEmpty {
            send(try removal(key, recipients.removedByName, readTime))
        }
        return true
    }

    /// Whether rules decide what the stream's client reads.
    var isJudged: Bool {
        guard let listeners else { return true }
        return service.access.isJudged(call.identity, listeners.database.name)
    }

    /// Reports that a document left targets, without its contents.
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
            pendingBoundary = (version, readTime)
            return
        }
        pendingBoundary = nil
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
