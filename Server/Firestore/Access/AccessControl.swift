import HearthHost
import HearthConcurrency
import HearthModel
import HearthRules
import HearthDocuments
import HearthWire

/// Decides what a request may do. The requests of every front end are checked here.
///
/// Administrators may do what their scope allows. All other clients are judged by the security rules of the database.
/// Without rules, a server for local development is open, as Google's emulator is, and any other server is closed.
package final class AccessControl: Sendable {
    let rules: RulesRegistry
    /// Whether error messages contain the reason, and a database without rules is open.
    let isEmulator: Bool
    /// Whether rules take the fields that a query filters for the complete fields of its documents.
    private let emulatesLists: Bool
    /// The project whose databases clients may create by their first write.
    private let project: String?
    private let clock: any Clock
    private let denials: DenialLog?

    package init(
        rules: RulesRegistry = RulesRegistry(), isEmulator: Bool, project: String? = nil,
        emulatesLists: Bool? = nil, clock: any Clock = SystemClock(), log: Log? = nil
    ) {
        self.emulatesLists = emulatesLists ?? isEmulator
        self.rules = rules
        self.isEmulator = isEmulator
        self.project = project
        self.clock = clock
        denials = log.map { DenialLog($0, clock: clock) }
    }

    /// The same message for every reason, as Google's service responds.
    static let denied = Status(.permissionDenied, "Missing or insufficient permissions.")

    /// The check between an identity and a database.
    private enum Judge {
        case nobody
        case rules(Ruleset, RulesAuth?)
    }

    /// - Throws: UNAUTHENTICATED for a token of another project.
    private static func requireToken(_ identity: Identity, for project: String) throws(Status) {
        if !identity.isFor(project) { throw Authenticator.otherProject }
    }

    private func judge(_ identity: Identity, _ database: DatabaseName) throws(Status) -> Judge {
        try Self.requireToken(identity, for: database.project)
        switch identity {
        case .administrator(let scope):
            if let project = scope.project, project != database.project { throw Self.denied }
            return .nobody
        case .client(let client):
            if let ruleset = rules.ruleset(of: database) {
                return .rules(ruleset, client.map { RulesAuth(uid: $0.uid, token: $0.token) })
            }
            if isEmulator { return .nobody }
            throw Self.denied
        }
    }

    /// Whether an identity's request may create a missing database: otherwise any client could fill the disk with empty
    /// ones.
    /// - Throws: PERMISSION_DENIED for identities that have no access to the database.
    func mayCreate(_ database: DatabaseName, _ identity: Identity) throws(Status) -> Bool {
        try Self.requireToken(identity, for: database.project)
        switch identity {
        case .administrator(let scope):
            if let project = scope.project, project != database.project { throw Self.denied }
            return isEmulator || !scope.isReadOnly
        case .client:
            if isEmulator { return true }
            guard rules.ruleset(of: database) != nil else { throw Self.denied }
            return database.project == project
        }
    }

    /// Whether rules decide what an identity reads.
    func isJudged(_ identity: Identity, _ database: DatabaseName) -> Bool {
        guard case .client = identity else { return false }
        return !isEmulator || !identity.isFor(database.project) || rules.ruleset(of: database) != nil
    }

    // MARK: Administrators

    /// Fails unless an identity administers a resource and has the permission for `effect`.
    /// - Parameter message: the error for other identities on a server for local development.
    package func requireAdministrator(
        _ identity: Identity, of resource: AdministeredResource, _ effect: AdministratorEffect,
        _ message: String = "Metadata operations require admin authentication."
    ) throws(Status) {
        if let project = resource.project { try Self.requireToken(identity, for: project) }
        switch identity {
        case .administrator(let scope):
            if scope.isReadOnly, effect == .writes {
                throw Status(.permissionDenied, "The credential \"\(scope.name)\" is read-only.")
            }
            guard let project = scope.project else { return }
            guard let wanted = resource.project, UTF8Order.equal(wanted, project) else {
                throw Status(
                    .permissionDenied, "The credential \"\(scope.name)\" is for the project \"\(project)\" alone.")
            }
        case .client:
            // A server for local development without rules is open to everybody.
            if isEmulator, isWithoutRules(resource) { return }
            throw isEmulator ? Status(.permissionDenied, message) : Self.denied
        }
    }

    private func isWithoutRules(_ resource: AdministeredResource) -> Bool {
        switch resource {
        case .database(let database): rules.ruleset(of: database) == nil
        case .project, .server: rules.isEmpty
        }
    }

    // MARK: Reading

    /// The documents that the judgement of a read depends on; it may change when they change.
    typealias Dependencies = [ResourcePath]

    /// Judges the reading of documents, each on its own.
    /// - Parameter reader: reads the same state as the request; documents that rules request are cached for further
    ///   judgements.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier` when the reader may not decode as much as the rules request.
    @discardableResult
    func get(
        _ paths: [ResourcePath], _ identity: Identity, _ database: DatabaseName, _ reader: StateReader
    ) throws(Status) -> Dependencies {
        guard case .rules(let ruleset, let auth) = try judge(identity, database) else { return [] }
        let access = RulesAccess(
            total: paths.count > 1 ? RulesLimits.accessesPerBatch : RulesLimits.accessesPerOperation)
        for path in paths {
            let request = RulesRequest(
                method: .get, database: database.database, path: path, auth: auth,
                time: FieldTransform.serverTime(clock.now()),
                resource: try reader.resource(path))
            try decide(ruleset, request, reader, access, database)
        }
        return access.paths.map(\.path)
    }

    /// Judges a query by its possible results.
    /// - Parameter reader: reads the same state as the request; documents that rules request are cached for further
    ///   judgements.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier` when the reader may not decode as much as the rules request.
    @discardableResult
    func list(
        _ query: Query, _ identity: Identity, _ reader: StateReader
    ) throws(Status) -> Dependencies {
        let database = query.parent.database
        guard case .rules(let ruleset, let auth) = try judge(identity, database) else { return [] }
        let collectionID: String
        var isGroup = false
        switch query.scope {
        case .collection(let id): collectionID = id
        case .collectionGroup(let id):
            collectionID = id
            isGroup = true
        // Rules apply to collections: none can allow a query of all of them.
        case .anyCollection, .allDescendants: throw Self.denied
        }
        let rulesQuery = RulesQuery(
            collectionID: collectionID, isGroup: isGroup, limit: query.limit, offset: query.offset,
            orderBy: query.orders.map { ($0.field, $0.descending) },
            branches: Self.branches(query.filter).map { RulesQuery.branch($0) }, isComplete: emulatesLists)
        let path = isGroup ? query.parent.path : query.parent.path.appending(collectionID)
        let access = RulesAccess(total: RulesLimits.accessesPerOperation)
        let request = RulesRequest(
            method: .list, database: database.database, path: path, auth: auth,
            time: FieldTransform.serverTime(clock.now()), query: rulesQuery)
        try decide(ruleset, request, reader, access, database)
        return access.paths.map(\.path)
    }

    /// A filter in disjunctive form: alternatives, each a list of filters that must all hold.
    private static func branches(_ filter: Filter?) -> [[Filter]] {
        switch filter {
        case nil: return [[]]
        case .field(let path, .in, .array(let values))?: return values.map { [.field(path, .equal, $0)] }
        case .field?, .unary?: return filter.map { [[$0]] } ?? []
        case .or(let filters)?: return filters.flatMap { branches($0) }
        case .and(let filters)?:
            return filters.reduce([[]]) { product, next in
                let alternatives = branches(next)
                return product.flatMap { left in alternatives.map { left + $0 } }
            }
        }
    }

    /// What was deleted or made private must be gone for clients: rules can decide about a past state only by that state,
    /// which does not show what has been withdrawn since. No SDK for such clients sends a read time.
    private static let past = Status(
        .permissionDenied,
        "Only administrators may read the past; a client to which rules apply may not set 'read_time'.")

    /// - Throws: PERMISSION_DENIED for a client that rules decide about.
    func requirePast(_ identity: Identity, _ database: DatabaseName) throws(Status) {
        if isJudged(identity, database) { throw Self.past }
    }

    // MARK: Writing

    /// The mode of an identity's transaction. Locks make writers wait, so only identities whose writes neither rules
    /// nor a credential forbid get locks; transactions of others are optimistic.
    /// - Throws: PERMISSION_DENIED for identities that have no access to the database.
    func permitted(
        _ mode: TransactionMode, _ identity: Identity, _ database: DatabaseName
    ) throws(Status) -> TransactionMode {
        let mayLock: Bool
        switch try judge(identity, database) {
        case .rules:
            if case .readOnly(_?) = mode { throw Self.past }
            mayLock = false
        case .nobody:
            if case .administrator(let scope) = identity { mayLock = !scope.isReadOnly } else { mayLock = true }
        }
        guard case .readWrite(let retry, _) = mode, !mayLock else { return mode }
        return .readWrite(retry: retry, concurrency: .optimistic)
    }

    /// The check before a commit; nil for none.
    /// - Throws: PERMISSION_DENIED for identities that may not write at all.
    func commitGuard(_ identity: Identity, _ database: DatabaseName) throws(Status) -> (any CommitGuard)? {
        if case .administrator(let scope) = identity, scope.isReadOnly { throw Self.denied }
        guard case .rules(let ruleset, let auth) = try judge(identity, database) else { return nil }
        return RulesGuard(ruleset: ruleset, auth: auth, database: database, access: self)
    }

    // MARK: Decisions

    func decide(
        _ ruleset: Ruleset, _ request: RulesRequest, _ reader: any DocumentReader, _ access: RulesAccess,
        _ database: DatabaseName
    ) throws(Status) {
        let verdict: RulesVerdict
        if isEmulator, let measured = rules.measured(database.project), measured.ruleset === ruleset {
            let (leased, reader, access) = (Lease(request), Lease(reader), Lease(access))
            verdict = measured.withCoverage { coverage in
                ruleset.decide(leased.value, reader.value, access.value, observer: coverage)
            }
        } else {
            verdict = ruleset.decide(request, reader, access)
        }
        if let failure = verdict.failure { throw failure }
        if verdict.isAllowed { return }
        denials?.record {
            [
                ("database", .string(database.string)), ("method", .string(request.method.rawValue)),
                ("path", .string(request.path.string)), ("uid", .string(request.auth?.uid ?? "")),
                ("reason", .string(verdict.message.split(separator: "\n").joined(separator: " "))),
            ]
        }
        throw isEmulator ? Status(.permissionDenied, verdict.message) : Self.denied
    }
}

/// A value that belongs to one thread, leased to a closure that runs immediately on the same thread.
private struct Lease<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
