import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// What a session's client wants written when it is gone, and how far that is kept in the journal.
struct SessionDisconnect {
    var writes = DisconnectWrites()
    /// Answers that wait for the journal.
    fileprivate var unkept: [Unkept] = []
    /// Whether the client is somebody else than the journal says, or may be.
    fileprivate var isIdentityUnkept = false
    fileprivate var isKeeping = false
    fileprivate var requester: Requester?
    /// Whether the journal has, or may have, anything of the session.
    fileprivate var isKept = false
    /// What the journal has of the identity; nil when it has to be written whole.
    fileprivate var keptIdentity: [UInt8]?
    fileprivate var retry: Timer?

    /// A wish that the journal doesn't have.
    fileprivate struct Wish {
        let answer: RealtimeSession.Answer
        let apply: (inout DisconnectWrites) -> Void
        /// What takes it back.
        let undo: DisconnectWrites.Undo
    }

    fileprivate enum Unkept {
        case wish(Wish)
        /// The client is somebody else: what tells it. The journal's trouble is none of that.
        case identity(() -> Void)
    }
}

extension RealtimeSession {
    /// On whose account writes are: on that of those before them until these are done, because only what is on one account
    /// is done in the order in which it was asked for.
    var writeRequester: Requester {
        if let former = disconnect.requester, writesInFlight > 0 || disconnect.isKeeping { return former }
        disconnect.requester = requester
        return requester
    }

    /// Judges a wish, takes it in, and answers when it would survive a crash.
    func wish(_ changes: [TreeChange], _ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void) {
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

    /// Asks a guard about changes, at first among what takes little.
    /// - Parameter done: on the loop.
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
        guard let wish = taken(answer, apply) else { return }
        disconnect.unkept.append(.wish(wish))
        keep()
    }

    /// Works a wish into those before it, or refuses it.
    private func taken(
        _ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void
    ) -> SessionDisconnect.Wish? {
        guard let undo = disconnect.writes.attempt(mayTake: { heldWishes.set($0) }, apply) else {
            refuse(
                answer, RealtimeRefusal(status: .tooBig, string: "Too much is to be written when the connection ends."))
            return nil
        }
        return SessionDisconnect.Wish(answer: answer, apply: apply, undo: undo)
    }

    /// Takes back wishes that the journal could not keep: their client knows them to be refused. Later ones are worked into what is
    /// left.
    private func takeBack(_ refused: [SessionDisconnect.Unkept]) {
        for unkept in (refused + disconnect.unkept).reversed() {
            if case .wish(let wish) = unkept { disconnect.writes.takeBack(wish.undo) }
        }
        // It was held before: more than that is not.
        _ = heldWishes.set(disconnect.writes.memoryBytes)
        disconnect.unkept = disconnect.unkept.compactMap { unkept in
            guard case .wish(let wish) = unkept else { return unkept }
            return taken(wish.answer, wish.apply).map { .wish($0) }
        }
    }

    /// The client is somebody else from now on. What it wishes is done with the rights that it has at its end, also when that is
    /// a crash, so it is told when the journal knows of it.
    /// - Parameter tell: tells the client.
    func keepIdentity(_ tell: @escaping () -> Void) {
        if isEnded { return }
        guard disconnect.isKept, !disconnect.writes.isEmpty else { return tell() }
        disconnect.isIdentityUnkept = true
        disconnect.unkept.append(.identity(tell))
        keep()
    }

    /// Writes to the journal what has gathered; one write at a time.
    private func keep() {
        if disconnect.isKeeping || isEnded || disconnect.unkept.isEmpty && !disconnect.isIdentityUnkept { return }
        let requester = writeRequester
        disconnect.isKeeping = true
        let answers = LoopBound(disconnect.unkept)
        disconnect.unkept = []
        disconnect.isIdentityUnkept = false
        disconnect.isKept = true
        let write = TreeWrite(changes: [], nowMilliseconds: service.nowMilliseconds, journal: journalChanges())
        namespace.database.submit(write, for: requester) { [self] outcome in
            namespace.hub.execute(on: loop) { [self] in
                disconnect.isKeeping = false
                if case .failed = outcome {
                    if !isEnded { takeBack(answers.value) }
                    keepIdentityLater()
                }
                for unkept in answers.value { end(unkept, outcome) }
                keep()
            }
        }
    }

    /// The journal could not be written: who the client is comes with the next wish, or in a while. Wishes are the client's to
    /// repeat.
    private func keepIdentityLater() {
        disconnect.keptIdentity = nil
        if isEnded { return }
        disconnect.retry?.cancel()
        disconnect.retry = loop.schedule(afterMilliseconds: Limits.realtimeJournalRetryMilliseconds) { [weak self] in
            guard let self, disconnect.keptIdentity == nil, !disconnect.writes.isEmpty else { return }
            disconnect.isIdentityUnkept = true
            keep()
        }
    }

    private func end(_ unkept: SessionDisconnect.Unkept, _ outcome: TreeOutcome) {
        switch unkept {
        case .identity(let tell): tell()
        case .wish(let wish):
            if case .failed(let status) = outcome { refuse(wish.answer, status) } else { confirm(wish.answer) }
        }
    }

    /// What leads the journal from what it has to what is wished now.
    private func journalChanges() -> [JournalChange] {
        let changes = disconnect.writes.takeChanges()
        if disconnect.writes.isEmpty {
            disconnect.keptIdentity = nil
            return [.end(id)]
        }
        let identity = DisconnectRecord.string(of: identity)
        var journal: [JournalChange] = []
        func keep(_ path: TreePath, _ node: Node?) {
            let record = node.map { DisconnectRecord.string(of: $0) }
            journal.append(JournalChange(session: id, entry: DisconnectRecord.entry(of: path), record: record))
        }
        if disconnect.keptIdentity == nil {
            journal.append(.end(id))
            for (path, node) in disconnect.writes.parts { keep(path, node) }
        } else {
            for (path, node) in changes { keep(path, node) }
        }
        if disconnect.keptIdentity != identity {
            disconnect.keptIdentity = identity
            journal.append(JournalChange(session: id, entry: DisconnectRecord.identityEntry, record: identity))
        }
        return journal
    }

    /// - Parameter done: on the loop, when the writes are made or refused.
    func runDisconnectWrites(_ done: @escaping () -> Void) {
        if !disconnect.isKept { return done() }
        let done = LoopBound(done)
        DisconnectRecord(identity, disconnect.writes).run(session: id, for: writeRequester, namespace, service) {
            [self] in
            loop.execute { done.value() }
        }
    }
}

/// What is to be written for a session that is gone. The journal keeps it in entries: one for the identity,
/// `{"admin":{"project":…,"readOnly":…}}`, `{"auth":…}`, or `{"auth":…,"by":{…}}` with an administrator's scope, and one for each location, with what goes there in export form
/// with server values; one below another is newer.
struct DisconnectRecord: Sendable {
    var identity: RealtimeIdentity
    var changes: [TreeChange]

    init(_ identity: RealtimeIdentity, _ writes: DisconnectWrites) {
        self.identity = identity
        changes = writes.changes
    }

    static let identityEntry = "identity"

    /// Begins with a slash, as nothing else does.
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

    /// The journal has parts that change others above them, and not in which order they came: what is above is older; beside
    /// each other what is put comes first, and priorities last, so that nothing is gone for a moment and loses its priority.
    private static func folded(_ parts: [TreeChange]) -> [TreeChange] {
        func rank(_ change: TreeChange) -> Int { change.node.isEmpty ? 1 : 0 }
        var writes = DisconnectWrites()
        func precedes(_ lhs: TreeChange, _ rhs: TreeChange) -> Bool {
            if lhs.isPriority != rhs.isPriority { return rhs.isPriority }
            return (lhs.place.count, rank(lhs)) < (rhs.place.count, rank(rhs))
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

    /// What has become of an attempt to make the writes.
    private enum Outcome {
        case made
        /// By rules.
        case refused
        /// Nothing is wrong with them: the journal keeps them.
        case failed
    }

    /// Makes the writes, all at once, and takes them out of the journal. Rules are asked again; places at which they forbid
    /// the write are left out. What can't be made now, because the disk is full or too much is waiting, is tried again while
    /// the namespace is open, and when it is opened.
    /// - Parameter done: on any thread, when they are made for the first time or can't be made now.
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
                    // Together they are refused still; nothing can be said for one and against another.
                    guard case .refused = outcome else { return done(outcome) }
                    Self.submit([], nil, session, for: requester, namespace, service, done)
                }
            }
        }
    }

    /// Which of several changes rules allow each by itself: asked beside the writer, who has others to serve.
    /// - Parameter done: given nil when that can't be found out now.
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
    /// Does what sessions that a crash has ended wanted done. To be called before anybody else uses the namespace.
    ///
    /// What can't be read stays in the journal, and is told of: it is no reason to keep everybody from the rest. Nor is what takes
    /// long, which is waited for on this thread for some time only.
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

    /// Tries again what could not be done for sessions that have ended. To be called now and then.
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
            // The store is in trouble still. To do it twice is to do it once: the journal knows what is done.
            for session in sessions { tryAgain(session) }
        }
    }

    /// - Parameter done: on any thread.
    private func run(
        _ kept: JournalSession, _ service: RealtimeService, _ done: @escaping @Sendable () -> Void
    ) {
        do throws(Status) {
            try DisconnectRecord(kept).run(session: kept.session, for: .server, self, service, done)
        } catch {
            done()
            service.log.error(
                "what a client wanted written at its end is lost", ("namespace", .string(name)),
                ("session", .string(kept.session)), ("error", .string(error.message)))
        }
    }
}

/// What is left to be done of what sessions wanted written that a crash has ended.
private final class AbandonedWrites: @unchecked Sendable {
    private let monitor = Monitor()
    // Under the monitor.
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
    /// Asks about changes of which not everything is worked out.
    fileprivate func judge(
        _ changes: [TreeChange], on view: TreeView, now: Int64, stepsMax: Int?
    ) throws(Status) {
        var resolved: [TreeChange] = []
        for change in changes { resolved.append(try change.resolved(nowMilliseconds: now, old: view)) }
        let after = TreeOverlay(base: view, changes: resolved)
        try judge(resolved, before: view, after: after, now: now, stepsMax: stepsMax)
    }
}
