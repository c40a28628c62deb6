import Glibc
import HearthConcurrency
import HearthDocuments
import HearthModel
import Synchronization

/// Many writes by one thread: commits of bounded size, a few at a time, as those of an administrator with a connection of
/// their own. The writer serves others between them.
///
/// What may pass (a full queue, a document that a transaction holds) is tried again. Commits that are too large are divided,
/// and so are those of which one write is refused.
///
/// `@unchecked Sendable`: belongs to the thread of `write`, but for `answers`.
final class CommitRun: @unchecked Sendable {
    struct Item: Sendable {
        var write: Write
        /// About what the write holds in memory, in bytes.
        var sizeBytes: Int
        /// How far the caller is with it, in bytes; reported as progress when it is written.
        var positionBytes: Int
    }

    private struct Batch: Sendable {
        var writes: [Write] = []
        var sizeBytes = 0
        var positionBytes = 0
    }

    /// Commits at a time.
    private static let batchesMax = 3
    /// Documents and bytes of one commit.
    private static let batchWritesMax = 200
    private static let batchBytesMax = 512 << 10
    /// Milliseconds between attempts of commits that fail with what may pass, and seconds after which that ends.
    private static let pauseMilliseconds: UInt32 = 100
    private static let patienceSeconds = 30

    private let database: Database
    private let makesEvents: Bool
    private let control: TransferControl
    private let isDispensable: @Sendable (Status) -> Bool
    private let requester: Requester
    /// From the writer's thread.
    private let answers = Answers<(number: Int, failure: Status?)>()
    private var open: [Int: Batch] = [:]
    private var lastNumber = 0
    /// Documents of open and of returned batches.
    private var openPaths: Set<ResourcePath> = []
    /// Batches that are sent again.
    private var returned: [Batch] = []
    private var passing: Status?
    /// When commits began to fail with what may pass; nil when the last one did not.
    private var failingSince: MonotonicTime?

    /// Documents that were written.
    private(set) var documentCount = 0

    private static let requesters = Atomic<UInt64>(1)

    /// - Parameter isDispensable: whether a single write that fails with this is left out, instead of ending the run.
    init(
        _ database: Database, makesEvents: Bool, _ control: TransferControl,
        isDispensable: @escaping @Sendable (Status) -> Bool = { _ in false }
    ) {
        self.database = database
        self.makesEvents = makesEvents
        self.control = control
        self.isDispensable = isDispensable
        // Connections are numbered from the other end.
        let number = Self.requesters.add(1, ordering: .relaxed).oldValue
        requester = .administrator(connection: UInt64.max - number)
    }

    /// `documentCount` is then the number of those that are written, also after an error.
    /// - Parameter next: the next write; nil at the end.
    /// - Throws: what `next` throws; why a document could not be written, with its path; CANCELLED.
    func write(_ next: () throws(Status) -> Item?) throws(Status) {
        do throws(Status) {
            try writeAll(next)
        } catch {
            while !open.isEmpty {
                let (number, failure) = answers.next()
                guard let batch = open.removeValue(forKey: number) else { continue }
                if failure == nil { documentCount += batch.writes.count }
            }
            control.update { $0.documentCount = documentCount }
            throw error
        }
    }

    private func writeAll(_ next: () throws(Status) -> Item?) throws(Status) {
        var batch = Batch()
        while let item = try next() {
            let path = item.write.document.path
            // Documents of one name are written in their order.
            if openPaths.contains(path) {
                try send(&batch)
                try drain()
            }
            openPaths.insert(path)
            batch.writes.append(item.write)
            batch.sizeBytes += item.sizeBytes
            batch.positionBytes = item.positionBytes
            if batch.writes.count >= Self.batchWritesMax || batch.sizeBytes >= Self.batchBytesMax { try send(&batch) }
        }
        try send(&batch)
        try drain()
    }

    private func send(_ batch: inout Batch) throws(Status) {
        if batch.writes.isEmpty { return }
        while open.count >= Self.batchesMax || !returned.isEmpty || passing != nil { try takeAnswer() }
        begin(batch)
        batch = Batch()
    }

    private func begin(_ batch: Batch) {
        lastNumber += 1
        let number = lastNumber
        open[number] = batch
        database.commit(
            batch.writes, sizeBytes: batch.sizeBytes, requester: requester, makesEvents: makesEvents
        ) { [answers] result in
            if case .failure(let status) = result { answers.add((number, status)) } else { answers.add((number, nil)) }
        }
    }

    /// Waits until all batches are written.
    private func drain() throws(Status) {
        while !open.isEmpty || !returned.isEmpty { try takeAnswer() }
    }

    private func takeAnswer() throws(Status) {
        try control.check()
        if open.isEmpty, let failure = passing {
            let since = failingSince ?? .now
            if MonotonicTime.now >= since.advanced(milliseconds: Self.patienceSeconds * 1000) { throw failure }
            usleep(Self.pauseMilliseconds * 1000)
            passing = nil
        }
        while passing == nil, open.count < Self.batchesMax, let batch = returned.popLast() { begin(batch) }
        if open.isEmpty { return }
        let (number, failure) = answers.next()
        guard let batch = open.removeValue(forKey: number) else { return }
        guard let failure else { return succeeded(batch) }
        switch failure.code {
        case .aborted where batch.writes.count > 1:
            // The halves show which document a transaction holds, and have the others written.
            failed(failure)
            returned += halves(batch).reversed()
        case .resourceExhausted, .aborted:
            failed(failure)
            returned.append(batch)
        case .invalidArgument where batch.writes.count > 1, .failedPrecondition where batch.writes.count > 1:
            // One document is refused, or all together are too much for one commit: the halves show it.
            returned += halves(batch).reversed()
        default:
            if batch.writes.count == 1, isDispensable(failure) { return ended(batch, written: 0) }
            let name = batch.writes.count == 1 ? "\(batch.writes[0].document.path): " : ""
            throw Status(failure.code, name + failure.message)
        }
    }

    private func failed(_ failure: Status) {
        passing = failure
        failingSince = failingSince ?? .now
    }

    private func succeeded(_ batch: Batch) { ended(batch, written: batch.writes.count) }

    private func ended(_ batch: Batch, written: Int) {
        documentCount += written
        for write in batch.writes { openPaths.remove(write.document.path) }
        failingSince = nil
        let count = documentCount
        control.update { progress in
            progress.documentCount = count
            progress.sizeBytes = max(progress.sizeBytes, batch.positionBytes)
        }
    }

    private func halves(_ batch: Batch) -> [Batch] {
        let middle = batch.writes.count / 2
        return [batch.writes[..<middle], batch.writes[middle...]].map { writes in
            Batch(writes: Array(writes), sizeBytes: batch.sizeBytes / 2, positionBytes: batch.positionBytes)
        }
    }
}
