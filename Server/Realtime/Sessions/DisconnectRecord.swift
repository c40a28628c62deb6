import HearthHost
import HearthModel
import HearthTree
import HearthTreeStorage

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
            return submit([], nil, session, for: requester, namespace, service, done)
        }
        let changes = changes
        submit(changes, treeGuard, session, for: requester, namespace, service) { outcome in
            guard case .refused = outcome, let treeGuard else { return done(outcome) }
            Self.allowed(changes, by: treeGuard, for: requester, namespace, service) { allowed in
                guard let allowed else { return done(.failed) }
                submit(allowed, treeGuard, session, for: requester, namespace, service) { outcome in
                    // Together they still fail, and there is no reason to prefer one to another.
                    guard case .refused = outcome else { return done(outcome) }
                    submit([], nil, session, for: requester, namespace, service, done)
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

    private func submit(
        _ changes: [TreeChange], _ treeGuard: (any TreeGuard)?, _ session: String, for requester: Requester,
        _ namespace: RealtimeNamespace, _ service: RealtimeService, _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        let write = TreeWrite(
            changes: changes, guard: treeGuard, nowMilliseconds: service.nowMilliseconds,
            journal: [.end(session)], author: { [identity] in identity.author.stored })
        namespace.database.submit(write, for: requester) { outcome in
            switch outcome {
            case .committed, .stale: done(.made)
            case .failed(let status): done(status.code == .permissionDenied ? .refused : .failed)
            }
        }
    }
}

extension TreeGuard {
    /// Evaluates changes that contain deferred values.
    func judge(
        _ changes: [TreeChange], on view: TreeView, now: Int64, stepsMax: Int?
    ) throws(Status) {
        var resolved: [TreeChange] = []
        for change in changes { resolved.append(try change.resolved(nowMilliseconds: now, old: view)) }
        let after = TreeOverlay(base: view, changes: resolved)
        try judge(resolved, before: view, after: after, now: now, stepsMax: stepsMax)
    }
}
