import HearthConcurrency
import HearthExport
import HearthModel
import HearthToolSupport
import Synchronization

/// Writes documents by commits, several at a time. A commit that was lost with its connection is repeated: it writes
/// the same again. Documents of one name are written in their order.
final class DocumentImport {
    /// Commits at a time, and their bytes.
    private static let batchesMax = 6
    private static let batchesBytesMax = 6 << 20

    private let connection: FirestoreConnection
    private let reading: DocumentSource.Reading
    private let progress: DocumentProgress
    /// By number.
    private var open: [Int: ImportBatch] = [:]
    private var openBytes = 0
    /// Documents of open batches.
    private var openNames: Set<String> = []
    private var lastNumber = 0
    /// Batches to send again.
    private var returned: [ImportBatch] = []
    /// A document that waits for an open batch that writes it, too.
    private var held: ExportedDocument?
    private var isAtEnd = false
    private var faults = FirestoreConnection.Faults()
    /// A failure that may pass; nothing is sent until all open commits have ended.
    private var passingFailure: Status?
    /// From the loop's thread.
    private let answers = Answers<(number: Int, status: Status?)>()

    /// Documents that are written, durably. Usable from any thread.
    var documentCount: Int { written.load(ordering: .relaxed) }
    private let written = Atomic<Int>(0)
    private var documentBytes = 0

    init(_ connection: FirestoreConnection, _ reading: DocumentSource.Reading, _ progress: DocumentProgress) {
        self.connection = connection
        self.reading = reading
        self.progress = progress
    }

    // MARK: The work

    func run() throws(ToolFailure) {
        while true {
            while passingFailure == nil, open.count < Self.batchesMax, openBytes < Self.batchesBytesMax,
                let batch = try nextBatch()
            {
                send(batch)
            }
            if open.isEmpty {
                guard let failure = passingFailure else { return }
                passingFailure = nil
                try recover(from: failure)
                continue
            }
            let (number, status) = answers.next()
            try take(number, status)
            progress.update(documents: documentCount, bytes: documentBytes)
        }
    }

    private func nextBatch() throws(ToolFailure) -> ImportBatch? {
        if let batch = returned.popLast() { return batch }
        var batch = ImportBatch(connection.database)
        var names: Set<String> = []
        while !batch.isFull, let document = try nextDocument() {
            if openNames.contains(document.path) || names.contains(document.path) {
                held = document
                break
            }
            names.insert(document.path)
            batch.add(document)
        }
        return batch.isEmpty ? nil : batch
    }

    private func nextDocument() throws(ToolFailure) -> ExportedDocument? {
        if let document = held {
            held = nil
            return document
        }
        if isAtEnd { return nil }
        do throws(Status) {
            let document = try reading.next(validates: false)
            isAtEnd = document == nil
            return document
        } catch {
            drain()
            throw ToolFailure(.data, "\(error.message)\n\(soFar)")
        }
    }

    private func send(_ batch: ImportBatch) {
        lastNumber += 1
        let number = lastNumber
        open[number] = batch
        openBytes += batch.sizeBytes
        openNames.formUnion(batch.names)
        connection.unary("Commit", batch.message) { [answers] result in
            switch result {
            case .success: answers.add((number, nil))
            case .failure(let status): answers.add((number, status))
            }
        }
    }

    private func take(_ number: Int, _ status: Status?) throws(ToolFailure) {
        guard let batch = open.removeValue(forKey: number) else { return }
        openBytes -= batch.sizeBytes
        guard let status else {
            openNames.subtract(batch.names)
            written.add(batch.count, ordering: .relaxed)
            documentBytes += batch.sizeBytes
            connection.server.noteAnswer()
            return faults.clear()
        }
        if FirestoreConnection.isPassing(status) {
            passingFailure = status
            returned.append(batch)
        } else if batch.count > 1, status.code == .invalidArgument || status.code == .failedPrecondition {
            // One document is refused, or all together are too much for one commit: the halves show it.
            returned += batch.halves.reversed()
        } else {
            drain()
            let name = batch.count == 1 ? "\(batch.names[0]): " : ""
            throw ToolFailure(.failed, "\(name)\(connection.failure(status).message)\n\(soFar)")
        }
    }

    private func recover(from status: Status) throws(ToolFailure) {
        do throws(ToolFailure) {
            try connection.recover(from: status, &faults)
        } catch {
            throw ToolFailure(error.code, "\(error.message)\n\(soFar)")
        }
    }

    /// Waits for the open commits, so that the number of documents that are in is right.
    private func drain() {
        while !open.isEmpty {
            let (number, status) = answers.next()
            guard let batch = open.removeValue(forKey: number) else { continue }
            if status == nil { written.add(batch.count, ordering: .relaxed) }
        }
    }

    /// How much is written when an import ends early. Usable from any thread; after `run` it is exact.
    var soFar: String {
        "\(DocumentProgress.count(documentCount, "document")) are in; the import may be repeated."
    }
}
