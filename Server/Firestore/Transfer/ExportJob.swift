import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthExport
import HearthModel

/// Writes the documents of a database, all as of one moment, to a managed export.
///
/// Reads in steps (`PastDocuments`), each in a snapshot of its own, so that the store's log does not grow for it. When the
/// moment is so old that the history may soon not reach back to it, one snapshot is held to the end. Nothing has the
/// export's name before it is whole and durable; what an error leaves is removed. Rules are not asked.
package struct ExportJob: Sendable {
    package struct Options: Sendable {
        /// The folder of the export. It must not exist, or be empty, unless `replaces` is set.
        package var path: String
        /// The name of its first file, without the ending.
        package var name: String
        /// The collection groups that are exported; nil for all documents.
        package var collectionIDs: [String]?
        /// The moment; nil for the present.
        package var time: Timestamp?
        /// Whether a folder that is there is replaced.
        package var replaces: Bool
        /// Whether the folders above it are made, too.
        package var makesParents = false

        package init(
            path: String, name: String, collectionIDs: [String]? = nil, time: Timestamp? = nil, replaces: Bool = false
        ) {
            self.path = path
            self.name = name
            self.collectionIDs = collectionIDs
            self.time = time
            self.replaces = replaces
        }

        /// The folder's path until it is whole: beside the final one, on the same disk.
        var partialPath: String {
            let path = Folders.withoutEnd(path)
            guard let slash = Folders.lastSlash(path) else { return Folders.partialPrefix + path }
            return path[..<slash] + "/" + Folders.partialPrefix + Folders.name(path)
        }
    }

    package struct Outcome: Sendable, Equatable {
        package var documentCount = 0
        package var fileCount = 0
        package var sizeBytes = 0
    }

    private let database: Database
    private let options: Options
    private let longReads: LongReads
    private let clock: any Clock

    package init(
        _ database: Database, _ options: Options, longReads: LongReads, clock: any Clock = SystemClock()
    ) {
        self.database = database
        self.options = options
        self.longReads = longReads
        self.clock = clock
    }

    /// Exports, on the calling thread: not on an event loop, nor on one of the workers.
    /// - Throws: ALREADY_EXISTS when the folder is not empty; FAILED_PRECONDITION when the moment is too old;
    ///   RESOURCE_EXHAUSTED when the disk is full; ABORTED when the database is cleared; CANCELLED.
    package func run(_ control: TransferControl) throws(Status) -> Outcome {
        try checkTarget()
        if let time = options.time { try database.check(readTime: time) }
        let parents = options.makesParents ? try Folders.createParents(of: options.path) : []
        let writer: ExportFolderWriter
        do throws(Status) {
            writer = try write(control)
        } catch {
            // Those that others use meanwhile are not empty.
            for parent in parents.reversed() { Folders.removeEmpty(parent) }
            throw error
        }
        let outcome = Outcome(
            documentCount: writer.documentCount, fileCount: writer.fileCount, sizeBytes: writer.sizeBytes)
        control.update { progress in
            progress.estimatedDocumentCount = outcome.documentCount
            progress.estimatedSizeBytes = outcome.sizeBytes
            progress.sizeBytes = outcome.sizeBytes
        }
        return outcome
    }

    private func write(_ control: TransferControl) throws(Status) -> ExportFolderWriter {
        let writer = try ExportFolderWriter(
            options.path, partial: options.partialPath, name: options.name, database: database.name,
            collectionIDs: options.collectionIDs, startTime: clock.now())
        do throws(Status) {
            try copy(to: writer, control)
            control.update { $0.phase = .finalizing }
            try writer.finish(endTime: clock.now(), replaces: options.replaces)
        } catch {
            writer.abandon()
            throw error
        }
        return writer
    }

    private func checkTarget() throws(Status) {
        guard Folders.exists(options.path), !options.replaces else { return }
        guard Folders.isFolder(options.path), try Folders.names(options.path).isEmpty else {
            throw Status(.alreadyExists, "\(options.path) exists, and is not an empty folder.")
        }
    }

    // MARK: Reading

    private func copy(to writer: ExportFolderWriter, _ control: TransferControl) throws(Status) {
        let read = try admission()
        defer { read.end() }
        let time: Timestamp
        if let given = options.time { time = given } else { time = try database.view().readTime }
        control.update { $0.readTime = time }
        let estimate = try database.documentCount(of: options.collectionIDs, control)
        control.update { progress in
            progress.estimatedDocumentCount = estimate
            progress.phase = .processing
        }
        var snapshot = try database.store.snapshot(.long)
        defer { snapshot.close() }
        var past = try PastDocuments(wanted, at: time.microseconds, in: snapshot)
        while true {
            let isDone = try step(&past, in: snapshot, writer, control)
            if isDone { return }
            guard isRecent(time) else { continue }
            snapshot.close()
            snapshot = try database.store.snapshot(.long)
            // Nothing but a clearing ends the history of a recent moment.
            if past.version < (try ChangeFeed.earliest(in: snapshot)) {
                throw .aborted("The database was cleared while it was exported.")
            }
        }
    }

    private func step(
        _ past: inout PastDocuments, in snapshot: any Snapshot, _ writer: ExportFolderWriter,
        _ control: TransferControl
    ) throws(Status) -> Bool {
        let budget = FeedBudget.long { () throws(Status) in
            try control.check()
            report(writer, control)
        }
        do throws(Status) {
            let isDone = try past.read(in: snapshot, budget) { key, document throws(Status) in
                guard let path = DocumentKey.pathBytes(key) else {
                    throw Status(.dataLoss, "A key of the database is none of a document.")
                }
                try writer.write(path: String(decoding: path, as: UTF8.self), fields: document.fields)
                return true
            }
            try control.check()
            report(writer, control)
            return isDone
        } catch {
            if error == ChangeFeed.tooOld { throw .failedPrecondition("The moment that is exported is too old.") }
            throw error
        }
    }

    private func report(_ writer: ExportFolderWriter, _ control: TransferControl) {
        let (documents, size) = (writer.documentCount, writer.sizeBytes)
        control.update { progress in
            progress.documentCount = documents
            progress.sizeBytes = size
            progress.estimate(from: documents, sizeBytes: size)
        }
    }

    private var wanted: ChangeFeed.Wanted {
        guard let ids = options.collectionIDs else { return .everything }
        return ChangeFeed.Wanted(below: []) { path in
            let id = path.segments[path.segments.count - 2]
            return ids.contains { UTF8Order.equal($0, id) }
        }
    }

    /// Whether the history reaches back to a moment for long.
    private func isRecent(_ time: Timestamp) -> Bool {
        clock.now().microseconds - time.microseconds < Int64(Limits.retentionSeconds) * 500_000
    }

    private func admission() throws(Status) -> LongRead {
        let admitted = Awaited<LongRead>()
        longReads.whenFree(for: .server) { admitted.set($0) }
        return try admitted.wait()
    }
}
