import HearthEngine
import HearthConcurrency
import HearthModel
import Synchronization

/// The effect of a commit, computed before anything is written: on the writer's thread, or, for a large commit, on a
/// snapshot beside it.
struct PreparedCommit: Sendable {
    let staged: StagedCommit
    /// One for each change.
    let differences: [IndexDifference]
    /// The version of the last commit that the snapshot shows, and the index catalog that was in force.
    let version: Int64
    let catalogEpoch: UInt64
    /// The keys of documents that only the guard read.
    let guardReads: Set<[UInt8]>
    /// The time that the guard took.
    let judgedNanoseconds: UInt64

    /// - Parameters:
    ///   - storedBytesMax: limit on the stored bytes of the documents that it processes.
    ///   - snapshot: shows the state before the commit.
    ///   - version: the version of the snapshot; any version when nothing can come between the preparation and the
    ///     commit.
    ///   - clock: measures the time that the guard takes.
    /// - Throws: the reason why the commit can't be made; `StagedCommit.isTooMuch`.
    init(
        _ request: QueuedCommit, on snapshot: any Snapshot, version: Int64, catalog: IndexCatalog,
        catalogEpoch: UInt64, latest: Int64, clock: any Clock, storedBytesMax: Int = .max,
        isWanted: () -> Bool = { true }
    ) throws(Status) {
        self.version = version
        self.catalogEpoch = catalogEpoch
        staged = try StagedCommit(
            request.writes, on: snapshot, catalog: catalog, requestTime: request.requestTime, latest: latest,
            defersPreconditions: request.guard != nil, storedBytesMax: storedBytesMax, isWanted: isWanted)
        let began = clock.monotonicNanoseconds()
        guardReads = try Self.judge(request, staged, on: snapshot, storedBytesMax: storedBytesMax)
        judgedNanoseconds = clock.monotonicNanoseconds() - began
        differences = try staged.differences(isWanted: isWanted)
    }

    /// Makes the guard judge the computed states.
    /// - Returns: the other documents that it read.
    private static func judge(
        _ request: QueuedCommit, _ staged: StagedCommit, on snapshot: any Snapshot, storedBytesMax: Int,
        isOver: @escaping () -> Bool = { false }
    ) throws(Status) -> Set<[UInt8]> {
        guard let commitGuard = request.guard else { return [] }
        let reads = GuardReads(
            bytesMax: storedBytesMax == .max ? .max : storedBytesMax - staged.storedBytes, isOver: isOver)
        do throws(Status) {
            // Before the preconditions: a client that may not write must learn nothing of the stored data.
            try commitGuard.check(
                GuardedCommit(
                    request.writes, on: snapshot, staged: staged, requestTime: request.requestTime, reads: reads))
        } catch {
            throw reads.isTooMuch ? StagedCommit.isTooMuch : error
        }
        // A rule may continue without a document that it could not read.
        if reads.isTooMuch { throw StagedCommit.isTooMuch }
        if let failure = staged.deferredFailure { throw failure }
        return reads.keys
    }

    /// Makes the guard judge again, when only documents that it read have changed since. That may take much longer than
    /// before.
    /// - Parameter isOver: called whenever the guard reads a document: whether it has taken too long.
    /// - Throws: the reason why the commit can't be made; `StagedCommit.isTooMuch`.
    func judgeAgain(
        _ request: QueuedCommit, on snapshot: any Snapshot, isOver: @escaping () -> Bool
    ) throws(Status) {
        _ = try Self.judge(request, staged, on: snapshot, storedBytesMax: .max, isOver: isOver)
    }

    /// The effect of a document's change on the prepared commit.
    func meaning(of key: [UInt8]) -> Freshness {
        if staged.touches(key) { return .outdated }
        return guardReads.contains(key) ? .toBeJudged : .fresh
    }

    enum Freshness: Int, Comparable {
        case fresh
        /// Only documents that the guard read have changed.
        case toBeJudged
        case outdated

        static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// Makes the guard judge the first write alone, which costs next to nothing: a commit that is denied for it needs
    /// no further work, however many writes it has.
    /// - Throws: the denial, when the other writes can't change it.
    static func judgeFirstWrite(
        of request: QueuedCommit, on snapshot: any Snapshot, catalog: IndexCatalog, latest: Int64
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
            // Errors of a write are reported when all writes are checked, in their order.
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

/// Notes the documents that a guard reads. Used by one thread.
final class GuardReads {
    fileprivate(set) var keys: Set<[UInt8]> = []
    private let bytesMax: Int
    private var bytes = 0
    private let isOver: () -> Bool
    /// Whether it requested more than `bytesMax`, or took too long.
    private(set) var isTooMuch = false

    /// - Parameters:
    ///   - bytesMax: limit on the stored bytes of documents that the commit doesn't write.
    ///   - isOver: whether the guard has taken too long.
    init(bytesMax: Int = .max, isOver: @escaping () -> Bool = { false }) {
        self.bytesMax = bytesMax
        self.isOver = isOver
    }

    /// Must be called before each document that the guard reads.
    func willRead() throws(Status) {
        guard isTooMuch || isOver() else { return }
        isTooMuch = true
        throw StagedCommit.isTooMuch
    }

    func charge(_ bytes: Int) throws(Status) {
        self.bytes += bytes
        guard self.bytes > bytesMax else { return }
        isTooMuch = true
        throw StagedCommit.isTooMuch
    }

    /// The documents whose state after the commit it requested.
    fileprivate(set) var pathsAfter: Set<ResourcePath> = []

    func note(_ key: [UInt8], isStaged: Bool) {
        if !isStaged { keys.insert(key) }
    }

    func noteAfter(_ path: ResourcePath) { pathsAfter.insert(path) }
}
