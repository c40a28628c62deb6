import HearthModel
import HearthTree
import HearthTreeStorage

/// What a session's client wants written when it is gone, and how far that is kept in the journal.
struct SessionDisconnect {
    var writes = DisconnectWrites()
    /// Answers that wait for the journal.
    fileprivate var unkept: [RealtimeSession.Answer] = []
    fileprivate var isKeeping = false
    /// Whether the journal has anything of the session.
    fileprivate var isKept = false
}

extension RealtimeSession {
    /// Judges a wish, takes it in, and answers when it would survive a crash.
    func wish(_ changes: [TreeChange], _ answer: Answer, _ apply: @escaping (inout DisconnectWrites) -> Void) {
        let treeGuard: (any TreeGuard)?
        do throws(Status) {
            treeGuard = try service.access.writeGuard(identity, namespace)
        } catch {
            return changes.isEmpty ? take(answer, apply) : refuse(answer, error)
        }
        guard let treeGuard, !changes.isEmpty else { return take(answer, apply) }
        let now = service.nowMilliseconds
        let held = LoopBound((answer, apply))
        hold()
        namespace.hub.read(on: loop, afterWrites: writesInFlight > 0) { view throws(Status) in
            var resolved: [TreeChange] = []
            for change in changes { resolved.append(try change.resolved(nowMilliseconds: now, old: view)) }
            let after = TreeOverlay(base: view, changes: resolved)
            try treeGuard.judge(resolved, before: view, after: after, now: now)
        } _: { [self] result, _ in
            switch result {
            case .success: take(held.value.0, held.value.1)
            case .failure(let status): refuse(held.value.0, status)
            }
            release()
        }
    }

    private func take(_ answer: Answer, _ apply: (inout DisconnectWrites) -> Void) {
        if isEnded { return }
        var writes = disconnect.writes
        apply(&writes)
        if writes.count > Limits.realtimeDisconnectWritesMax || writes.sizeBytes > Limits.realtimeDisconnectBytesMax {
            return refuse(
                answer, RealtimeRefusal(status: .tooBig, text: "Too much is to be written when the connection ends."))
        }
        disconnect.writes = writes
        disconnect.unkept.append(answer)
        keep()
    }

    /// Writes to the journal what has gathered; one write at a time.
    private func keep() {
        if disconnect.isKeeping || disconnect.unkept.isEmpty || isEnded { return }
        disconnect.isKeeping = true
        let answers = LoopBound(disconnect.unkept)
        disconnect.unkept = []
        let record = disconnect.writes.isEmpty ? nil : DisconnectRecord(identity, disconnect.writes).text
        disconnect.isKept = true
        let write = TreeWrite(
            changes: [], nowMilliseconds: service.nowMilliseconds,
            journal: [JournalChange(session: id, record: record)])
        namespace.database.submit(write) { [self] outcome in
            loop.execute { [self] in
                disconnect.isKeeping = false
                for answer in answers.value {
                    if case .failed(let status) = outcome { refuse(answer, status) } else { confirm(answer) }
                }
                keep()
            }
        }
    }

    /// - Parameter done: on the loop, when the writes are made or refused.
    func runDisconnectWrites(_ done: @escaping () -> Void) {
        if !disconnect.isKept { return done() }
        let done = LoopBound(done)
        DisconnectRecord(identity, disconnect.writes).run(session: id, namespace, service) { [self] in
            loop.execute { done.value() }
        }
    }
}

/// What is to be written for a session that is gone, as the journal keeps it:
/// `{"admin":{"project":…,"readOnly":…},"writes":{…}}` or `{"auth":…,"writes":{…}}`, where `writes` has the paths and, in
/// export form with server values, what goes there.
struct DisconnectRecord: Sendable {
    var identity: RealtimeIdentity
    var changes: [TreeChange]

    init(_ identity: RealtimeIdentity, _ writes: DisconnectWrites) {
        self.identity = identity
        changes = writes.changes
    }

    var text: [UInt8] {
        var text: [UInt8] = []
        switch identity {
        case .administrator(let scope):
            var members: [(name: String, value: JSONValue)] = [("readOnly", .bool(scope.isReadOnly))]
            if let project = scope.project { members.append(("project", .string(project))) }
            text.append(contentsOf: #"{"admin":"#.utf8)
            TreeJSON.append(.object(members), to: &text)
        case .client(let auth, _):
            text.append(contentsOf: #"{"auth":"#.utf8)
            TreeJSON.append(auth ?? .null, to: &text)
        }
        text.append(contentsOf: #","writes":{"#.utf8)
        for (position, change) in changes.enumerated() {
            if position > 0 { text.append(UInt8(ascii: ",")) }
            TreeJSON.appendString(change.path.text, to: &text)
            text.append(UInt8(ascii: ":"))
            TreeJSON.append(change.node, to: &text, form: .export)
        }
        text.append(contentsOf: "}}".utf8)
        return text
    }

    /// - Throws: DATA_LOSS.
    init(parsing text: [UInt8]) throws(Status) {
        do throws(TreeDataError) {
            var identity: RealtimeIdentity?
            var changes: [TreeChange]?
            for (name, range) in try TreeJSON.members(text) {
                switch name {
                case "admin":
                    let scope = try TreeJSON.value(text, in: range)
                    identity = .administrator(
                        AdministratorScope(
                            project: scope["project"]?.string, isReadOnly: scope["readOnly"]?.bool ?? true))
                case "auth":
                    let auth = try TreeJSON.value(text, in: range)
                    // `nil` beside a value would be JSON's null.
                    identity = auth.isNull ? .nobody : .client(auth: auth, expiresAt: nil)
                default:
                    changes = []
                    for (path, value) in try TreeJSON.members(text, in: range) {
                        changes?.append(TreeChange(path: TreePath(path), node: try TreeJSON.node(text, in: value)))
                    }
                }
            }
            guard let identity, let changes else { throw .invalidJSON }
            self.identity = identity
            self.changes = changes
        } catch {
            throw Status(.dataLoss, "The journal's record of a session is damaged: \(error.message)")
        }
    }

    /// Makes the writes, all at once, and takes them out of the journal. Rules are asked again; places at which they forbid
    /// the write are left out.
    /// - Parameter done: on any thread.
    func run(
        session: String, _ namespace: RealtimeNamespace, _ service: RealtimeService,
        _ done: @escaping @Sendable () -> Void
    ) {
        let treeGuard: (any TreeGuard)?
        do throws(Status) {
            treeGuard = try service.access.writeGuard(identity, namespace)
        } catch {
            return Self.submit([], nil, session, namespace, service) { _ in done() }
        }
        let changes = changes
        Self.submit(changes, treeGuard, session, namespace, service) { refused in
            guard refused, let treeGuard else { return done() }
            let now = service.nowMilliseconds
            let isQueued = namespace.database.perform { view in
                let allowed = changes.filter { change in
                    do throws(Status) {
                        let resolved = [try change.resolved(nowMilliseconds: now, old: view)]
                        let after = TreeOverlay(base: view, changes: resolved)
                        try treeGuard.judge(resolved, before: view, after: after, now: now)
                        return true
                    } catch {
                        return false
                    }
                }
                Self.submit(allowed, treeGuard, session, namespace, service) { refused in
                    // Together they are refused still; nothing can be said for one and against another.
                    guard refused else { return done() }
                    Self.submit([], nil, session, namespace, service) { _ in done() }
                }
            }
            // The database is closed: the next start finds the journal.
            if !isQueued { done() }
        }
    }

    private static func submit(
        _ changes: [TreeChange], _ treeGuard: (any TreeGuard)?, _ session: String, _ namespace: RealtimeNamespace,
        _ service: RealtimeService, _ done: @escaping @Sendable (_ isRefused: Bool) -> Void
    ) {
        let write = TreeWrite(
            changes: changes, guard: treeGuard, nowMilliseconds: service.nowMilliseconds,
            journal: [JournalChange(session: session, record: nil)])
        namespace.database.submit(write) { outcome in
            if case .failed(let status) = outcome { done(status.code == .permissionDenied) } else { done(false) }
        }
    }
}

extension RealtimeNamespace {
    /// Does what sessions that a crash has ended wanted done. To be called before anybody else uses the namespace.
    func runAbandoned(_ service: RealtimeService) throws(Status) {
        let view = try database.view()
        defer { view.close() }
        for (session, text) in try view.journal() {
            try DisconnectRecord(parsing: text).run(session: session, self, service) {}
        }
    }
}
