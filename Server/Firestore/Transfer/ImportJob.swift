import Glibc
import HearthConcurrency
import HearthDocuments
import HearthExport
import HearthModel
import Synchronization

/// Writes the documents of a managed export to a database: each replaces the one of its name, others stay.
///
/// All files are read once before the first write, so that a damaged export changes nothing. Then commits of bounded size
/// follow, a few at a time, as those of an administrator with a connection of their own: the writer serves others between
/// them. No transaction: readers see a part of an import. Rules are not asked. It may be repeated, with the same result.
package struct ImportJob: Sendable {
    package struct Options: Sendable {
        /// Only these collection groups; nil for all documents. All are checked.
        package var collectionIDs: [String]?
        /// Whether references into the exported database stay, instead of becoming references into the target.
        package var keepsReferences = false
        /// Whether all files are read before the first write.
        package var verifies = true
        /// Whether triggers get events of the writes.
        package var makesEvents = true

        package init() {}
    }

    package struct Outcome: Sendable, Equatable {
        /// Documents that were written.
        package var documentCount = 0
        /// Values with a meaning that only databases in Datastore mode have; their bare values were written.
        package var legacyValueCount = 0
    }

    private let folder: ExportFolder
    private let database: Database
    private let options: Options

    /// - Parameter folder: opened, so that all that its metadata name is there.
    package init(_ folder: ExportFolder, to database: Database, _ options: Options = Options()) {
        self.folder = folder
        self.database = database
        self.options = options
    }

    /// Imports, on the calling thread: not on an event loop, nor on one of the workers.
    /// - Throws: INVALID_ARGUMENT, NOT_FOUND and others with the file when the export is damaged; CANCELLED; why a
    ///   document could not be written, with the number of those that are.
    package func run(_ control: TransferControl) throws(Status) -> Outcome {
        let reads = options.verifies ? 2 : 1
        control.update { progress in
            if options.collectionIDs == nil { progress.estimatedDocumentCount = folder.documentCount }
            progress.estimatedSizeBytes = folder.sizeBytes * reads
        }
        if options.verifies { try verify(control) }
        control.update { $0.phase = .processing }
        let run = ImportRun(
            database, makesEvents: options.makesEvents, control, sizeBytesBefore: folder.sizeBytes * (reads - 1))
        let reader = folder.reader(target: options.keepsReferences ? nil : database.name)
        let documentCount = try run.write { () throws(Status) in
            while let document = try reader.next() {
                if isWanted(document) { return (document, reader.consumedBytes) }
            }
            return nil
        }
        control.update { progress in
            progress.phase = .finalizing
            progress.documentCount = documentCount
            progress.estimatedDocumentCount = documentCount
            progress.sizeBytes = progress.estimatedSizeBytes
        }
        return Outcome(documentCount: documentCount, legacyValueCount: reader.legacyValueCount)
    }

    private func isWanted(_ document: ExportedDocument) -> Bool {
        guard let ids = options.collectionIDs else { return true }
        let id = String(document.collectionID)
        return ids.contains { UTF8Order.equal($0, id) }
    }

    private func verify(_ control: TransferControl) throws(Status) {
        let reader = folder.reader(target: options.keepsReferences ? nil : database.name)
        var wantedCount = 0
        while let document = try reader.next(validates: true) {
            if isWanted(document) { wantedCount += 1 }
            if reader.documentCount & 255 == 0 {
                try control.check()
                control.update { $0.sizeBytes = reader.consumedBytes }
            }
        }
        try control.check()
        control.update { $0.estimatedDocumentCount = wantedCount }
    }
}

/// The second pass of an import: commits, a few at a time.
///
/// `@unchecked Sendable`: belongs to the thread of `write`, but for `answers`.
private final class ImportRun: @unchecked Sendable {
    private struct Batch: Sendable {
        var writes: [Write] = []
        var sizeBytes = 0
        /// Bytes of files that were read behind its last document.
        var consumedBytes = 0
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
    private let sizeBytesBefore: Int
    private let requester: Requester
    /// From the writer's thread.
    private let answers = Answers<(number: Int, failure: Status?)>()
    private var open: [Int: Batch] = [:]
    private var lastNumber = 0
    /// Documents of open and of returned batches.
    private var openPaths: Set<ResourcePath> = []
    /// Batches that are sent again.
    private var returned: [Batch] = []
    private var documentCount = 0
    private var passing: Status?
    /// When commits began to fail with what may pass; nil when the last one did not.
    private var failingSince: MonotonicTime?

    private static let requesters = Atomic<UInt64>(1)

    init(_ database: Database, makesEvents: Bool, _ control: TransferControl, sizeBytesBefore: Int) {
        self.database = database
        self.makesEvents = makesEvents
        self.control = control
        self.sizeBytesBefore = sizeBytesBefore
        // Connections are numbered from the other end.
        let number = Self.requesters.add(1, ordering: .relaxed).oldValue
        requester = .administrator(connection: UInt64.max - number)
    }

    /// - Parameter next: the next document, and the bytes of files that were read behind it; nil at the end.
    /// - Returns: the number of documents that were written.
    func write(
        _ next: () throws(Status) -> (document: ExportedDocument, consumedBytes: Int)?
    ) throws(Status) -> Int {
        do throws(Status) {
            try writeAll(next)
        } catch {
            while !open.isEmpty {
                let (number, failure) = answers.next()
                guard let batch = open.removeValue(forKey: number) else { continue }
                if failure == nil { documentCount += batch.writes.count }
            }
            control.update { $0.documentCount = documentCount }
            throw Status(error.code, "\(error.message) \(documentCount) documents are in; the import may be repeated.")
        }
        return documentCount
    }

    private func writeAll(
        _ next: () throws(Status) -> (document: ExportedDocument, consumedBytes: Int)?
    ) throws(Status) {
        var batch = Batch()
        while let (document, consumedBytes) = try next() {
            let (name, fields) = try checked(document)
            // Documents of one name are written in their order.
            if openPaths.contains(name.path) {
                try send(&batch)
                try drain()
            }
            openPaths.insert(name.path)
            batch.writes.append(Write(document: name, operation: .update(fields: fields, mask: nil)))
            batch.sizeBytes += document.fields.count + document.path.utf8.count
            batch.consumedBytes = consumedBytes
            if batch.writes.count >= Self.batchWritesMax || batch.sizeBytes >= Self.batchBytesMax { try send(&batch) }
        }
        try send(&batch)
        try drain()
    }

    private func checked(_ document: ExportedDocument) throws(Status) -> (name: ResourceName, fields: MapValue) {
        do throws(Status) {
            return try document.checked(in: database.name)
        } catch {
            throw Status(error.code, "\(document.path): \(error.message)")
        }
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
        case .resourceExhausted, .aborted:
            passing = failure
            failingSince = failingSince ?? .now
            returned.append(batch)
        case .invalidArgument where batch.writes.count > 1, .failedPrecondition where batch.writes.count > 1:
            // One document is refused, or all together are too much for one commit: the halves show it.
            returned += halves(batch).reversed()
        default:
            let name = batch.writes.count == 1 ? "\(batch.writes[0].document.path): " : ""
            throw Status(failure.code, name + failure.message)
        }
    }

    private func succeeded(_ batch: Batch) {
        documentCount += batch.writes.count
        for write in batch.writes { openPaths.remove(write.document.path) }
        failingSince = nil
        let count = documentCount
        control.update { progress in
            progress.documentCount = count
            progress.sizeBytes = max(progress.sizeBytes, sizeBytesBefore + batch.consumedBytes)
        }
    }

    private func halves(_ batch: Batch) -> [Batch] {
        let middle = batch.writes.count / 2
        return [batch.writes[..<middle], batch.writes[middle...]].map { writes in
            Batch(writes: Array(writes), sizeBytes: batch.sizeBytes / 2, consumedBytes: batch.consumedBytes)
        }
    }
}
