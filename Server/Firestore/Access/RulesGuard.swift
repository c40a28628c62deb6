import HearthModel
import HearthRules
import HearthDocuments

/// Has security rules judge a commit: each write is judged from the stored state to the state after the whole commit.
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
        // `request.time` equals the server timestamps of the same commit.
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
                // Several writes of one document are judged as one change, from the stored state to the final state.
                if isBatch, !judged.insert(path).inserted { continue }
                let final = try reader.document(path, isAfter: true)
                request.method = Self.method(of: write, from: stored, to: final)
                if request.method != .delete { request.newResource = final }
            }
            try access.decide(ruleset, request, reader, accesses, database)
        }
    }

    /// A write that only verifies needs the right to read.
    private static func isVerification(_ write: Write) -> Bool {
        if case .verify = write.operation { true } else { false }
    }

    /// The method to judge: a precondition states what its client assumes to be stored.
    private static func method(of write: Write, from stored: RulesDocument?, to final: RulesDocument?) -> RulesMethod {
        if final == nil { return .delete }
        switch write.precondition {
        case .exists(let expected): return expected ? .update : .create
        case .none, .updateTime: return stored == nil ? .create : .update
        }
    }
}

/// Gives rules the states before and after a commit.
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
