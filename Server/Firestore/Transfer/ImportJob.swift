import Glibc
import HearthConcurrency
import HearthDocuments
import HearthExport
import HearthModel

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
        let reader = folder.reader(target: options.keepsReferences ? nil : database.name)
        let documentCount = try write(reader, control, sizeBytesBefore: folder.sizeBytes * (reads - 1))
        control.update { progress in
            progress.phase = .finalizing
            progress.documentCount = documentCount
            progress.estimatedDocumentCount = documentCount
            progress.sizeBytes = progress.estimatedSizeBytes
        }
        return Outcome(documentCount: documentCount, legacyValueCount: reader.legacyValueCount)
    }

    /// The second pass.
    /// - Parameter sizeBytesBefore: bytes that the first one has read.
    /// - Returns: the number of documents that were written.
    private func write(
        _ reader: ExportFolderReader, _ control: TransferControl, sizeBytesBefore: Int
    ) throws(Status) -> Int {
        let run = CommitRun(database, makesEvents: options.makesEvents, control)
        var pace = Pace(control, sizeBytesBefore: sizeBytesBefore)
        do throws(Status) {
            try run.write { () throws(Status) in
                while let document = try reader.next() {
                    // Few of many documents may be wanted.
                    try pace.step(reader)
                    guard isWanted(document) else { continue }
                    return CommitRun.Item(
                        write: try Self.write(document, in: database.name),
                        sizeBytes: document.fields.count + document.path.utf8.count,
                        positionBytes: sizeBytesBefore + reader.consumedBytes)
                }
                return nil
            }
        } catch {
            throw Status(
                error.code, "\(error.message) \(run.documentCount) documents are in; the import may be repeated.")
        }
        return run.documentCount
    }

    private static func write(
        _ document: ExportedDocument, in database: DatabaseName
    ) throws(Status) -> Write {
        do throws(Status) {
            let (name, fields) = try document.checked(in: database)
            return Write(document: name, operation: .update(fields: fields, mask: nil))
        } catch {
            throw Status(error.code, "\(document.path): \(error.message)")
        }
    }

    /// Reports how far a pass is, and ends it when that is wanted, after each piece of the files.
    private struct Pace {
        private static let pieceBytes = 64 << 10
        private let control: TransferControl
        private let sizeBytesBefore: Int
        private var nextBytes = 0

        init(_ control: TransferControl, sizeBytesBefore: Int) {
            self.control = control
            self.sizeBytesBefore = sizeBytesBefore
        }

        mutating func step(_ reader: ExportFolderReader) throws(Status) {
            let consumed = reader.consumedBytes
            if consumed < nextBytes { return }
            nextBytes = consumed + Self.pieceBytes
            try control.check()
            control.update { $0.sizeBytes = max($0.sizeBytes, sizeBytesBefore + consumed) }
        }
    }

    private func isWanted(_ document: ExportedDocument) -> Bool {
        guard let ids = options.collectionIDs else { return true }
        let id = String(document.collectionID)
        return ids.contains { UTF8Order.equal($0, id) }
    }

    private func verify(_ control: TransferControl) throws(Status) {
        let reader = folder.reader(target: options.keepsReferences ? nil : database.name)
        var wantedCount = 0
        var pace = Pace(control, sizeBytesBefore: 0)
        while let document = try reader.next(validates: true) {
            if isWanted(document) { wantedCount += 1 }
            try pace.step(reader)
        }
        try control.check()
        control.update { $0.estimatedDocumentCount = wantedCount }
    }
}
