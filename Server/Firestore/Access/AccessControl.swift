import HearthHost
import HearthConcurrency
import HearthModel
import HearthRules
import HearthDocuments
import HearthWire

/// Whether an administrator's request changes something. There is no default anywhere: a method that does not say it must
/// not compile.
package enum AdministratorEffect: Sendable {
    case reads, writes
}

/// What an administrator's request is about.
package enum AdministeredResource: Sendable {
    case database(DatabaseName)
    case project(String)
    /// The server as a whole: no credential of one project administers it.
    case server

    fileprivate var project: String? {
        switch self {
        case .database(let database): database.project
        case .project(let project): project
        case .server: nil
        }
    }
}

/// Decides what a request may do: the one place that every front end's requests pass.
///
/// Administrators may do what their scope allows. Everybody else is judged by the security rules of the database; where there
/// are none, a server for local development is open, as Google's emulator is, and any other is closed.
package final class AccessControl: Sendable {
    let rules: RulesRegistry
    /// Whether answers tell what went wrong, and a database without rules is open.
    let isEmulator: Bool
    /// Whether rules take the fields that a query filters for all that its documents have.
    private let emulatesLists: Bool
    /// The project whose databases clients may be the first to use.
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

    /// The same for every reason. Source: what the service answers.
    static let denied = Status(.permissionDenied, "Missing or insufficient permissions.")

    /// What stands between an identity and a database.
    private enum Judge {
        case nobody
        case rules(Ruleset, RulesAuth?)
    }

    private func judge(_ identity: Identity, _ database: DatabaseName) throws(Status) -> Judge {
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

    /// Whether an identity's request may make a database that isn't there yet: otherwise anybody could fill the disk with
    /// empty ones.
    /// - Throws: PERMISSION_DENIED for those who have no business in the database at all.
    func mayCreate(_ database: DatabaseName, _ identity: Identity) throws(Status) -> Bool {
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

    /// Whether rules decide of what an identity reads.
    func isJudged(_ identity: Identity, _ database: DatabaseName) -> Bool {
        guard case .client = identity else { return false }
        return !isEmulator || rules.ruleset(of: database) != nil
    }

    // MARK: Administrators

    /// Fails unless an identity administers a resource, and may do this to it.
    /// - Parameter message: the reason that somebody else gets on a server for local development.
    package func requireAdministrator(
        _ identity: Identity, of resource: AdministeredResource, _ effect: AdministratorEffect,
        _ message: String = "Metadata operations require admin authentication."
    ) throws(Status) {
        switch identity {
        case .administrator(let scope):
            if scope.isReadOnly, effect == .writes { throw Self.denied }
            guard let project = scope.project else { return }
            guard let wanted = resource.project, UTF8Order.equal(wanted, project) else { throw Self.denied }
        case .client:
            // Nobody has said who may do what on a server for local development.
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

    /// What the judgement of a read has looked at; it may come out otherwise when that changes.
    typealias Dependencies = [ResourcePath]

    /// Judges the reading of documents, each for itself.
    /// - Parameter reader: of the state that is read; what rules ask it for is kept for further judgements.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier` when the reader may not decode as much as rules want to see.
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

    /// Judges a query by what it could find.
    /// - Parameter reader: of the state that is read; what rules ask it for is kept for further judgements.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier` when the reader may not decode as much as rules want to see.
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
        // Rules are written for collections: none can allow a query of all of them.
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

    /// A filter as alternatives of filters that must all hold.
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

    // MARK: Writing

    /// The mode in which an identity's transaction runs. A lock keeps those waiting who may write, so only those get one whom
    /// neither rules nor a credential keep from writing; the transactions of others are optimistic.
    /// - Throws: PERMISSION_DENIED for those who have no business in the database at all.
    func permitted(
        _ mode: TransactionMode, _ identity: Identity, _ database: DatabaseName
    ) throws(Status) -> TransactionMode {
        let mayLock: Bool
        switch try judge(identity, database) {
        case .rules: mayLock = false
        case .nobody:
            if case .administrator(let scope) = identity { mayLock = !scope.isReadOnly } else { mayLock = true }
        }
        guard case .readWrite(let retry, _) = mode, !mayLock else { return mode }
        return .readWrite(retry: retry, concurrency: .optimistic)
    }

    /// What has to be asked before a commit is made; nil when nothing has.
    /// - Throws: PERMISSION_DENIED for those who may not write at all.
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
            let (asked, reader, access) = (Lease(request), Lease(reader), Lease(access))
            verdict = measured.withCoverage { coverage in
                ruleset.decide(asked.value, reader.value, access.value, observer: coverage)
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

/// Something that one thread uses, lent to a closure that runs at once on the same thread.
private struct Lease<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
