import HearthModel
import Synchronization

/// What a commit will do, worked out before anything of it is written: on the writer's thread, or, of a large commit, beside
/// it on a snapshot.
struct PreparedCommit: Sendable {
    let staged: StagedCommit
    /// Of each change.
    let differences: [IndexDifference]
    /// The version of the last commit that the snapshot shows, and the index catalog that was in force.
    let version: Int64
    let catalogEpoch: UInt64
    /// The keys of documents that only the guard looked at.
    let guardReads: Set<[UInt8]>

    /// - Parameters:
    ///   - snapshot: shows the state before the commit.
    ///   - version: that of the snapshot; any when nothing can come between the preparation and the commit.
    /// - Throws: why the commit can't be made.
    init(
        _ request: CommitRequest, on snapshot: any Snapshot, version: Int64, catalog: IndexCatalog,
        catalogEpoch: UInt64, latest: Int64, isWanted: () -> Bool = { true }
    ) throws(Status) {
        self.version = version
        self.catalogEpoch = catalogEpoch
        staged = try StagedCommit(
            request.writes, on: snapshot, catalog: catalog, requestTime: request.requestTime, latest: latest,
            defersPreconditions: request.guard != nil, isWanted: isWanted)
        let reads = GuardReads()
        if let commitGuard = request.guard {
            // Before the preconditions: whoever may not write learns nothing of what is stored.
            try commitGuard.check(
                GuardedCommit(
                    request.writes, on: snapshot, staged: staged, requestTime: request.requestTime, reads: reads))
            if let failure = staged.deferredFailure { throw failure }
        }
        guardReads = reads.keys
        differences = try staged.differences(isWanted: isWanted)
    }

    /// Whether what was worked out rests on a document.
    func rests(on key: [UInt8]) -> Bool { staged.touches(key) || guardReads.contains(key) }

    /// Has the guard judge the first write alone, which costs next to nothing: a commit that is refused for it needs no
    /// further work, however many writes it has.
    /// - Throws: the refusal, when the other writes can't change it.
    static func judgeFirstWrite(
        of request: CommitRequest, on snapshot: any Snapshot, catalog: IndexCatalog, latest: Int64
    ) throws(Status) {
        guard let commitGuard = request.guard, let first = request.writes.first, request.writes.count > 1 else {
            return
        }
        let reads = GuardReads()
        let staged: StagedCommit
        do throws(Status) {
            staged = try StagedCommit(
                [first], on: snapshot, catalog: catalog, requestTime: request.requestTime, latest: latest,
                defersPreconditions: true)
        } catch {
            // What is wrong with a write is said when all are looked at, in their order.
            return
        }
        do throws(Status) {
            try commitGuard.check(
                GuardedCommit(
                    [first], on: snapshot, staged: staged, requestTime: request.requestTime, reads: reads,
                    isPartOfBatch: true))
        } catch {
            let later = request.writes.dropFirst()
            if !later.contains(where: { reads.pathsAfter.contains($0.document.path) }) { throw error }
        }
    }
}

/// Notes which documents a guard looks at. Used by one thread.
final class GuardReads {
    fileprivate(set) var keys: Set<[UInt8]> = []
    /// Those whose state after the commit it wanted to see.
    fileprivate(set) var pathsAfter: Set<ResourcePath> = []

    func note(_ key: [UInt8], isStaged: Bool) {
        if !isStaged { keys.insert(key) }
    }

    func noteAfter(_ path: ResourcePath) { pathsAfter.insert(path) }
}
