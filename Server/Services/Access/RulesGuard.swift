import HearthModel
import HearthRules
import HearthStorage

/// Has security rules judge a commit: each write from what is stored to what the whole commit leaves behind.
final class RulesGuard: CommitGuard {
    private let ruleset: Ruleset
    private let auth: RulesAuth?
    private let database: DatabaseName
    private let access: AccessControl

    init(ruleset: Ruleset, auth: RulesAuth?, database: DatabaseName, access: AccessControl) {
        self.ruleset = ruleset
        self.auth = auth
        self.database = database
        self.access = access
    }

    func check(_ commit: GuardedCommit) throws(Status) {
        // `request.time` is what a server timestamp of the same commit writes.
        let time = FieldTransform.serverTime(commit.requestTime)
        let isBatch = commit.writes.count > 1
        let accesses = RulesAccess(
            total: isBatch ? RulesLimits.accessesPerBatch : RulesLimits.accessesPerOperation)
        let reader = CommitReader(commit)
        for write in commit.writes {
            let path = write.document.path
            let stored = try reader.document(path, isAfter: false)
            var request = RulesRequest(
                method: Self.method(of: write, exists: stored != nil), database: database.database, path: path,
                auth: auth, time: time, resource: stored)
            switch request.method {
            case .create, .update: request.newResource = try reader.document(path, isAfter: true)
            case .get, .list, .delete: break
            }
            try access.decide(ruleset, request, reader, accesses, database)
        }
    }

    /// As what a write is judged: a precondition says what its client believes to be stored.
    private static func method(of write: Write, exists: Bool) -> RulesMethod {
        switch write.operation {
        case .verify: return .get
        case .delete: return .delete
        case .update:
            switch write.precondition {
            case .exists(let expected): return expected ? .update : .create
            case .none, .updateTime: return exists ? .update : .create
            }
        }
    }
}

/// Shows rules the states before and after a commit.
private final class CommitReader: DocumentReader {
    private let commit: GuardedCommit

    init(_ commit: GuardedCommit) {
        self.commit = commit
    }

    func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? {
        if isAfter { return try commit.after(path).map { RulesDocument(path: path, fields: $0) } }
        return try commit.before(path).map { RulesDocument(path: path, $0) }
    }
}
