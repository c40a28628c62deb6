import HearthModel
import HearthRules
import HearthDocuments

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
        let isBatch = commit.isBatch
        let accesses = RulesAccess(
            total: isBatch ? RulesLimits.accessesPerBatch : RulesLimits.accessesPerOperation)
        let reader = CommitReader(commit)
        var judged: Set<ResourcePath> = []
        for write in commit.writes {
            let path = write.document.path
            let stored = try reader.document(path, isAfter: false)
            var request = RulesRequest(
                method: .get, database: database.database, path: path, auth: auth, time: time, resource: stored)
            if !Self.isVerification(write) {
                // Several writes of one document are one step, from what is stored to what they leave together.
                if isBatch, !judged.insert(path).inserted { continue }
                let final = try reader.document(path, isAfter: true)
                request.method = Self.method(of: write, from: stored, to: final)
                if request.method != .delete { request.newResource = final }
            }
            try access.decide(ruleset, request, reader, accesses, database)
        }
    }

    /// A write that only looks needs the right to read.
    private static func isVerification(_ write: Write) -> Bool {
        if case .verify = write.operation { true } else { false }
    }

    /// As what a step is judged: a precondition says what its client believes to be stored.
    private static func method(of write: Write, from stored: RulesDocument?, to final: RulesDocument?) -> RulesMethod {
        if final == nil { return .delete }
        switch write.precondition {
        case .exists(let expected): return expected ? .update : .create
        case .none, .updateTime: return stored == nil ? .create : .update
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
