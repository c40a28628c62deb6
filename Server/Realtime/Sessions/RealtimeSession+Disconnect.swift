import HearthHost
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

/// The writes of a session that has ended. The journal stores them as entries: one for the identity,
/// `{"admin":{"project":…,"readOnly":…}}`, `{"auth":…}`, or `{"auth":…,"by":{…}}` with an administrator's scope, and
/// one for each location, with its data in export form with server values. An entry below another one is newer.
struct DisconnectRecord: Sendable {
    var identity: RealtimeIdentity
    var changes: [TreeChange]

    init(_ identity: RealtimeIdentity, _ writes: DisconnectWrites) {
        self.identity = identity
        changes = writes.changes
    }

    static let identityEntry = "identity"

    /// Begins with a slash; no location does.
    static func entry(of path: TreePath) -> String { path.description }

    static func string(of node: Node) -> [UInt8] {
        var string: [UInt8] = []
        TreeJSON.append(node, to: &string, form: .export)
        return string
    }

    static func string(of identity: RealtimeIdentity) -> [UInt8] {
        var string: [UInt8] = []
        switch identity {
        case .administrator(let scope): TreeJSON.append(.object([("admin", json(scope))]), to: &string)
        case .client(let auth, _): TreeJSON.append(.object([("auth", auth ?? .null)]), to: &string)
        case .impersonation(let auth, let scope):
            TreeJSON.append(.object([("auth", auth ?? .null), ("by", json(scope))]), to: &string)
        }
        return string
    }

    private static func json(_ scope: AdministratorScope) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [("readOnly", .bool(scope.isReadOnly))]
        if let project = scope.project { members.append(("project", .string(project))) }
        return .object(members)
    }

    private static func scope(_ record: JSONValue) -> AdministratorScope {
        AdministratorScope(project: record["project"]?.string, isReadOnly: record["readOnly"]?.bool ?? true)
    }

    /// - Throws: DATA_LOSS.
    init(_ kept: JournalSession) throws(Status) {
        do throws(TreeDataError) {
            var identity: RealtimeIdentity?
            var parts: [TreeChange] = []
            for (entry, record) in kept.records {
                if entry.utf8.first == UInt8(ascii: "/") {
                    parts.append(TreeChange(path: TreePath(entry), node: try TreeJSON.node(record)))
                } else if UTF8Order.equal(entry, Self.identityEntry) {
                    identity = try Self.identity(record)
                } else {
                    throw .invalidJSON
                }
            }
            guard let identity else { throw .invalidJSON }
            self.identity = identity
            changes = Self.folded(parts)
        } catch {
            throw Status(.dataLoss, "The journal's record of a session is damaged: \(error.message)")
        }
    }

    /// The journal can contain entries that change other entries above them, and does not store their order. An entry
    /// above another one is older. Among siblings, values come first and priorities last, so that no location is empty
    /// for a moment and loses its priority.
    private static func folded(_ parts: [TreeChange]) -> [TreeChange] {
        func rank(_ change: TreeChange) -> Int { change.node.isEmpty ? 1 : 0 }
        var writes = DisconnectWrites()
        func precedes(_ lhs: TreeChange, _ rhs: TreeChange) -> Bool {
            if lhs.isPriority != rhs.isPriority { return rhs.isPriority }
            return (lhs.location.count, rank(lhs)) < (rhs.location.count, rank(rhs))
        }
        for part in parts.sorted(by: precedes) {
            writes.put(part.path, part.node)
        }
        return writes.changes
    }

    private static func identity(_ string: [UInt8]) throws(TreeDataError) -> RealtimeIdentity {
        let record = try TreeJSON.value(string)
        if let admin = record["admin"] { return .administrator(scope(admin)) }
        guard let value = record["auth"] else { throw .invalidJSON }
        // `nil` beside a value would be JSON's null.
        let auth: JSONValue? = if value.isNull { .none } else { .some(value) }
        if let by = record["by"] { return .impersonation(auth: auth, by: scope(by)) }
        return .client(auth: auth, end: nil)
    }

    /// The result of an attempt to make the writes.
    private enum Outcome {
        case made
        /// Denied by rules.
        case refused
        /// The writes are valid; the journal keeps them.
        case failed
    }

    /// Makes the writes, all at once, and removes them from the journal. Rules are evaluated again; locations where
    /// they deny the write are omitted. Writes that cannot be made now, because the disk is full or too many writes
    /// wait, are tried again while the namespace is open, and when it is opened.
    /// - Parameter done: is called on any thread when the writes are made, or after the first attempt that has to be
    ///   repeated.
    func run(
        session: String, for requester: Requester, _ namespace: RealtimeNamespace, _ service: RealtimeService,
        _ done: @escaping @Sendable () -> Void
    ) {
        make(session, for: requester, namespace, service) { outcome in
            if case .failed = outcome { namespace.tryAgain(session) }
            done()
        }
    }

    private func make(
        _ session: String, for requester: Requester, _ namespace: RealtimeNamespace, _ service: RealtimeService,
        _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        let treeGuard: (any TreeGuard)?
        do throws(Status) {
            treeGuard = try service.access.writeGuard(identity, namespace)
        } catch {
            return Self.submit([], nil, session, for: requester, namespace, service, done)
        }
        let changes = changes
        Self.submit(changes, treeGuard, session, for: requester, namespace, service) { outcome in
            guard case .refused = outcome, let treeGuard else { return done(outcome) }
            Self.allowed(changes, by: treeGuard, for: requester, namespace, service) { allowed in
                guard let allowed else { return done(.failed) }
                Self.submit(allowed, treeGuard, session, for: requester, namespace, service) { outcome in
                    // Together they still fail, and there is no reason to prefer one to another.
                    guard case .refused = outcome else { return done(outcome) }
                    Self.submit([], nil, session, for: requester, namespace, service, done)
                }
            }
        }
    }

    /// Finds out which of several changes the rules allow individually. This runs beside the writer, which has other
    /// clients to serve.
    /// - Parameter done: receives nil when this cannot be found out now.
    private static func allowed(
        _ changes: [TreeChange], by treeGuard: any TreeGuard, for requester: Requester, _ namespace: RealtimeNamespace,
        _ service: RealtimeService, _ done: @escaping @Sendable ([TreeChange]?) -> Void
    ) {
        let now = service.nowMilliseconds
        service.pool.run(.long, for: requester, refused: { _ in done(nil) }) {
            let view: TreeView
            do throws(Status) {
                view = try namespace.database.view()
            } catch {
                // The database is closed: the next start finds the journal.
                return done(nil)
            }
            let allowed = changes.filter { change in
                do throws(Status) {
                    try treeGuard.judge([change], on: view, now: now, stepsMax: nil)
                    return true
                } catch {
                    return false
                }
            }
            view.close()
            done(allowed)
        }
    }

    private static func submit(
        _ changes: [TreeChange], _ treeGuard: (any TreeGuard)?, _ session: String, for requester: Requester,
        _ namespace: RealtimeNamespace, _ service: RealtimeService, _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        let write = TreeWrite(
            changes: changes, guard: treeGuard, nowMilliseconds: service.nowMilliseconds,
            journal: [.end(session)])
        namespace.database.submit(write, for: requester) { outcome in
            switch outcome {
            case .committed, .stale: done(.made)
            case .failed(let status): done(status.code == .permissionDenied ? .refused : .failed)
            }
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

extension TreeGuard {
    /// Evaluates changes that contain deferred values.
    fileprivate func judge(
        _ changes: [TreeChange], on view: TreeView, now: Int64, stepsMax: Int?
    ) throws(Status) {
        var resolved: [TreeChange] = []
        for change in changes { resolved.append(try change.resolved(nowMilliseconds: now, old: view)) }
        let after = TreeOverlay(base: view, changes: resolved)
        try judge(resolved, before: view, after: after, now: now, stepsMax: stepsMax)
    }
}
