import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// A session's disconnect writes, and how much of them the journal contains.
struct SessionDisconnect {
    var writes = DisconnectWrites()
    /// Answers that wait for the journal.
    fileprivate var unjournaled: [Unjournaled] = []
    /// Whether the client's identity differs, or may differ, from the identity in the journal.
    fileprivate var isIdentityUnjournaled = false
    fileprivate var isWritingJournal = false
    fileprivate var requester: Requester?
    /// Whether the journal contains, or may contain, an entry of the session.
    fileprivate var isInJournal = false
    /// The journal's copy of the identity; nil when it must be written whole.
    fileprivate var journaledIdentity: [UInt8]?
    fileprivate var retry: Timer?

    /// A disconnect write that the journal does not contain.
    fileprivate struct PendingWrite {
        let answer: RealtimeSession.Answer
        let apply: (inout DisconnectWrites) -> Void
        /// Undoes it.
        let undo: DisconnectWrites.Undo
    }

    fileprivate enum Unjournaled {
        case write(PendingWrite)
        /// Reports a change of the client's identity. It does not depend on the journal.
        case identity(() -> Void)
    }
}

extension RealtimeSession {
    /// The account of the writes. New writes use the account of earlier writes until these are done, because only
    /// writes on one account are made in the order in which they were requested.
    var writeRequester: Requester {
        if let former = disconnect.requester, writesInFlight > 0 || disconnect.isWritingJournal { return former }
        disconnect.requester = requester
        return requester
    }

    /// Checks a disconnect write, adds it, and answers when it would survive a crash.
    func addDisconnectWrite(
        _ changes: [TreeChange], _ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void
    ) {
        let treeGuard: (any TreeGuard)?
        do throws(Status) {
            treeGuard = try service.access.writeGuard(identity, namespace)
        } catch {
            return changes.isEmpty ? take(answer, apply) : refuse(answer, error)
        }
        guard let treeGuard, !changes.isEmpty else { return take(answer, apply) }
        let held = LoopBound((answer, apply))
        hold()
        judge(changes, by: treeGuard, .brief) { [self] result in
            switch result {
            case .success: take(held.value.0, held.value.1)
            case .failure(let status): refuse(held.value.0, status)
            }
            release()
        }
    }

    /// Asks a guard about changes, at first with a small budget.
    /// - Parameter done: is called on the loop.
    private func judge(
        _ changes: [TreeChange], by treeGuard: any TreeGuard, _ kind: WorkerPool.Kind,
        _ done: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let now = service.nowMilliseconds
        let stepsMax = kind == .brief ? Limits.treeJudgeStepsMax : nil
        namespace.hub.read(kind, on: loop, for: writeRequester, afterWrites: writesInFlight > 0) {
            view throws(Status) in
            try treeGuard.judge(changes, on: view, now: now, stepsMax: stepsMax)
        } _: { [self] result, _ in
            if kind == .brief, case .failure(let status) = result, status.code == .resourceExhausted {
                return judge(changes, by: treeGuard, .long, done)
            }
            done(result)
        }
    }

    private func take(_ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void) {
        if isEnded { return }
        guard let write = taken(answer, apply) else { return }
        disconnect.unjournaled.append(.write(write))
        writeJournal()
    }

    /// Merges a disconnect write into those before it, or rejects it.
    private func taken(
        _ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void
    ) -> SessionDisconnect.PendingWrite? {
        guard let undo = disconnect.writes.attempt(mayTake: { heldDisconnectWrites.set($0) }, apply) else {
            refuse(
                answer,
                RealtimeRefusal(
                    status: .tooBig, string: "The connection has too many or too large onDisconnect writes."))
            return nil
        }
        return SessionDisconnect.PendingWrite(answer: answer, apply: apply, undo: undo)
    }

    /// Undoes the disconnect writes that the journal could not store: their client has received an error. Later ones
    /// are merged into the rest.
    private func takeBack(_ refused: [SessionDisconnect.Unjournaled]) {
        for unjournaled in (refused + disconnect.unjournaled).reversed() {
            if case .write(let write) = unjournaled { disconnect.writes.takeBack(write.undo) }
        }
        // It was within the bounds before, and is not larger now.
        _ = heldDisconnectWrites.set(disconnect.writes.memoryBytes)
        disconnect.unjournaled = disconnect.unjournaled.compactMap { unjournaled in
            guard case .write(let write) = unjournaled else { return unjournaled }
            return taken(write.answer, write.apply).map { .write($0) }
        }
    }

    /// The client's identity changes. The disconnect writes are made with the rights that the client has at its end,
    /// also when that end is a crash. Therefore the client is notified when the journal contains the identity.
    /// - Parameter notify: notifies the client.
    func journalIdentity(_ notify: @escaping () -> Void) {
        if isEnded { return }
        guard disconnect.isInJournal, !disconnect.writes.isEmpty else { return notify() }
        disconnect.isIdentityUnjournaled = true
        disconnect.unjournaled.append(.identity(notify))
        writeJournal()
    }

    /// Writes the collected entries to the journal; one write at a time.
    private func writeJournal() {
        if disconnect.isWritingJournal || isEnded || disconnect.unjournaled.isEmpty && !disconnect.isIdentityUnjournaled
        {
            return
        }
        let requester = writeRequester
        disconnect.isWritingJournal = true
        let answers = LoopBound(disconnect.unjournaled)
        disconnect.unjournaled = []
        disconnect.isIdentityUnjournaled = false
        disconnect.isInJournal = true
        let write = TreeWrite(changes: [], nowMilliseconds: service.nowMilliseconds, journal: journalChanges())
        namespace.database.submit(write, for: requester) { [self] outcome in
            namespace.hub.execute(on: loop) { [self] in
                disconnect.isWritingJournal = false
                if case .failed = outcome {
                    if !isEnded { takeBack(answers.value) }
                    journalIdentityLater()
                }
                for unjournaled in answers.value { end(unjournaled, outcome) }
                writeJournal()
            }
        }
    }

    /// The journal could not be written. The identity is written with the next disconnect write, or after a delay. The
    /// client must repeat its disconnect writes.
    private func journalIdentityLater() {
        disconnect.journaledIdentity = nil
        if isEnded { return }
        disconnect.retry?.cancel()
        disconnect.retry = loop.schedule(afterMilliseconds: Limits.realtimeJournalRetryMilliseconds) { [weak self] in
            guard let self, disconnect.journaledIdentity == nil, !disconnect.writes.isEmpty else { return }
            disconnect.isIdentityUnjournaled = true
            writeJournal()
        }
    }

    private func end(_ unjournaled: SessionDisconnect.Unjournaled, _ outcome: TreeOutcome) {
        switch unjournaled {
        case .identity(let notify): notify()
        case .write(let write):
            if case .failed(let status) = outcome { refuse(write.answer, status) } else { confirm(write.answer) }
        }
    }

    /// The difference between the journal's content and the present disconnect writes.
    private func journalChanges() -> [JournalChange] {
        let changes = disconnect.writes.takeChanges()
        if disconnect.writes.isEmpty {
            disconnect.journaledIdentity = nil
            return [.end(id)]
        }
        let identity = DisconnectRecord.string(of: identity)
        var journal: [JournalChange] = []
        func keep(_ path: TreePath, _ node: Node?) {
            let record = node.map { DisconnectRecord.string(of: $0) }
            journal.append(JournalChange(session: id, entry: DisconnectRecord.entry(of: path), record: record))
        }
        if disconnect.journaledIdentity == nil {
            journal.append(.end(id))
            for (path, node) in disconnect.writes.parts { keep(path, node) }
        } else {
            for (path, node) in changes { keep(path, node) }
        }
        if disconnect.journaledIdentity != identity {
            disconnect.journaledIdentity = identity
            journal.append(JournalChange(session: id, entry: DisconnectRecord.identityEntry, record: identity))
        }
        return journal
    }

    /// - Parameter done: is called on the loop when the writes are made or have failed.
    func runDisconnectWrites(_ done: @escaping () -> Void) {
        if !disconnect.isInJournal { return done() }
        let done = LoopBound(done)
        DisconnectRecord(identity, disconnect.writes).run(session: id, for: writeRequester, namespace, service) {
            [self] in
            loop.execute { done.value() }
        }
    }
}

extension RealtimeNamespace {
    /// Makes the disconnect writes of sessions that a crash has ended. Must be called before the namespace has any
    /// other user.
    ///
    /// An entry that cannot be read stays in the journal and is logged: it must not block all clients. The same holds
    /// for writes that take long: this thread waits for them for a limited time only.
    func runAbandoned(
        _ service: RealtimeService, waitMilliseconds: Int = Limits.realtimeAbandonedWaitMilliseconds
    ) throws(Status) {
        let kept = try readJournal()
        if kept.isEmpty { return }
        let abandoned = AbandonedWrites(count: kept.count)
        for session in kept { run(session, service) { abandoned.isDone() } }
        abandoned.wait(milliseconds: waitMilliseconds)
    }

    private func readJournal() throws(Status) -> [JournalSession] {
        let view = try database.view()
        defer { view.close() }
        return try view.journal()
    }

    /// Tries again the writes that failed for sessions that have ended. Must be called periodically.
    func runUnfinished(_ service: RealtimeService) {
        let sessions = takeUnfinished()
        if sessions.isEmpty { return }
        do throws(Status) {
            let view = try database.view()
            defer { view.close() }
            for session in sessions {
                if let kept = try view.journal(of: session) { run(kept, service) {} }
            }
        } catch {
            // The store still fails. Writes are idempotent here: the journal records which are made.
            for session in sessions { tryAgain(session) }
        }
    }

    /// - Parameter done: is called on any thread.
    private func run(
        _ kept: JournalSession, _ service: RealtimeService, _ done: @escaping @Sendable () -> Void
    ) {
        do throws(Status) {
            try DisconnectRecord(kept).run(session: kept.session, for: .server, self, service, done)
        } catch {
            done()
            service.log.error(
                "the onDisconnect writes of a session are lost", ("namespace", .string(name)),
                ("session", .string(kept.session)), ("error", .string(error.message)))
        }
    }
}

/// The remaining disconnect writes of sessions that a crash has ended.
private final class AbandonedWrites: @unchecked Sendable {
    private let monitor = Monitor()
    // Guarded by the monitor.
    private var left: Int

    init(count: Int) { left = count }

    func isDone() {
        monitor.withLock { left -= 1 }
        monitor.signal()
    }

    func wait(milliseconds: Int) {
        let end = MonotonicTime.now.advanced(milliseconds: milliseconds)
        monitor.withLock { while left > 0, MonotonicTime.now < end { monitor.wait(until: end) } }
    }
}
