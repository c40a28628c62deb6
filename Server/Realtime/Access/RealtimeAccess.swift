import HearthHost
import HearthModel
import HearthRules
import HearthTree
import HearthTreeStorage

/// Decides what a request on the Realtime Database may do. The requests of all front ends use it.
///
/// An administrator's scope decides for administrators. The rules of the namespace decide for all others. Without
/// rules, a server for local development allows everything, as Google's emulator does, and any other server denies
/// everything.
final class RealtimeAccess: Sendable {
    private let isEmulator: Bool
    /// The server's project.
    private let project: String

    init(isEmulator: Bool, project: String) {
        self.isEmulator = isEmulator
        self.project = project
    }

    /// The same for every reason. Source: the service's answers.
    static var denied: Status { RealtimeAuthenticator.denied }

    /// The project that a namespace belongs to: the one whose default namespace has this name, otherwise the server's.
    /// Tokens and scopes of other projects do not reach a namespace whose project cannot be known.
    func project(ofNamespace name: String) -> String { RealtimeName.project(ofStandard: name) ?? project }

    /// Whether an administrator's scope contains the project of a namespace.
    private func contains(_ scope: AdministratorScope, _ namespace: String) -> Bool {
        scope.project.map { UTF8Order.equal($0, project(ofNamespace: namespace)) } ?? true
    }

    /// The error of a read whose rules take longer to evaluate than allowed.
    static let readTakesLong = Status.resourceExhausted("The rules take long for this read.")

    /// - Parameters:
    ///   - query: nil for the location as a whole.
    ///   - stepsMax: of the decision; one that takes more fails with `readTakesLong`. Nil for the general limit of
    ///     rules.
    func mayRead(
        _ path: TreePath, query: TreeQuery?, _ identity: RealtimeIdentity, _ namespace: RealtimeNamespace,
        _ data: any TreeData, now: Int64, stepsMax: Int? = nil
    ) throws(Status) -> Bool {
        if let scope = identity.scope, !contains(scope, namespace.name) { return false }
        if case .administrator = identity { return true }
        guard let rules = namespace.rules else { return isEmulator }
        guard let stepsMax else {
            return try rules.mayRead(path, query: query, auth: identity.auth, data: data, now: now)
        }
        guard
            let isAllowed = try rules.mayRead(
                path, query: query, auth: identity.auth, data: data, now: now, stepsMax: stepsMax)
        else { throw Self.readTakesLong }
        return isAllowed
    }

    /// The check that must precede a write; nil when none is needed.
    /// - Throws: PERMISSION_DENIED for identities that may never write.
    func writeGuard(
        _ identity: RealtimeIdentity, _ namespace: RealtimeNamespace
    ) throws(Status) -> (any TreeGuard)? {
        if let scope = identity.scope, scope.isReadOnly || !contains(scope, namespace.name) { throw Self.denied }
        if case .administrator = identity { return nil }
        if namespace.rules == nil {
            if isEmulator { return nil }
            throw Self.denied
        }
        return RealtimeGuard(namespace: namespace, auth: identity.auth, isEmulator: isEmulator)
    }

    /// Whether a write whose data isn't known yet may be allowed. False when it fails whatever the data is, so that it
    /// need not be received or decoded.
    func mayWrite(_ scope: TreeWriteScope, _ identity: RealtimeIdentity, _ namespace: RealtimeNamespace) -> Bool {
        if let scope = identity.scope, scope.isReadOnly || !contains(scope, namespace.name) { return false }
        if case .administrator = identity { return true }
        return namespace.rules?.mayGrantWrite(scope, auth: identity.auth) ?? isEmulator
    }

    /// - Throws: PERMISSION_DENIED.
    func requireAdministrator(
        _ identity: RealtimeIdentity, of namespace: RealtimeNamespace, writes: Bool
    ) throws(Status) {
        guard case .administrator(let scope) = identity, contains(scope, namespace.name), !(writes && scope.isReadOnly)
        else {
            throw Self.denied
        }
    }

    /// Whether an identity's request may create a namespace.
    func mayCreate(_ identity: RealtimeIdentity, _ namespace: String) -> Bool {
        if isEmulator { return true }
        guard case .administrator(let scope) = identity else { return false }
        return contains(scope, namespace) && !scope.isReadOnly
    }
}

/// Lets the rules that are in force at the time of the write evaluate it.
private final class RealtimeGuard: TreeGuard {
    private let namespace: RealtimeNamespace
    private let auth: JSONValue?
    private let isEmulator: Bool

    private static let takesLong = Status.resourceExhausted("The rules take long for this write.")

    init(namespace: RealtimeNamespace, auth: JSONValue?, isEmulator: Bool) {
        self.namespace = namespace
        self.auth = auth
        self.isEmulator = isEmulator
    }

    var basis: (any AnyObject & Sendable)? { namespace.rules }

    func judge(
        _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
    ) throws(Status) {
        guard let rules = namespace.rules else {
            if isEmulator { return }
            throw RealtimeAccess.denied
        }
        let verdict = try rules.mayWrite(
            update, auth: auth, before: before, after: after, now: now,
            stepsMax: min(stepsMax ?? .max, TreeRulesLimits.stepsMax))
        switch verdict {
        case .allowed: return
        case .denied(let denial):
            if stepsMax != nil, case .exhausted = denial.reason { throw Self.takesLong }
            throw RealtimeAccess.denied
        }
    }
}
