import HearthModel

/// Reads the documents of a managed export one after another, and checks that there are as many as its metadata say.
package final class ExportFolderReader {
    private let folder: ExportFolder
    private var entities: EntityReader
    private var partIndex = 0
    private var fileIndex = 0
    private var log: LogReader?
    private var partCount = 0
    /// Documents that were read.
    package private(set) var documentCount = 0
    private var finishedBytes = 0

    init(_ folder: ExportFolder, target: DatabaseName?) {
        self.folder = folder
        entities = EntityReader(target: target)
    }

    /// Values whose meaning only databases in Datastore mode have.
    package var legacyValueCount: Int { entities.legacyValueCount }
    /// Bytes of files that were read.
    package var consumedBytes: Int { finishedBytes + (log?.consumedBytes ?? 0) }

    /// The next document; nil at the end.
    /// - Parameter validates: all is checked that a database checks of a document.
    /// - Throws: INVALID_ARGUMENT with the file and the position or the number of the record.
    package func next(validates: Bool = false) throws(Status) -> ExportedDocument? {
        while partIndex < folder.parts.count {
            let part = folder.parts[partIndex]
            if let log {
                let document = try log.next { record throws(Status) -> ExportedDocument in
                    let document = try entities.read(record)
                    if validates { try Self.validate(document) }
                    return document
                }
                if let document {
                    partCount += 1
                    documentCount += 1
                    return document
                }
                finishedBytes += log.consumedBytes
                self.log = nil
                fileIndex += 1
            }
            if fileIndex < part.files.count {
                log = LogReader(try FileSource(part.files[fileIndex]))
            } else {
                try finish(part)
            }
        }
        return nil
    }

    private static func validate(_ document: ExportedDocument) throws(Status) {
        do throws(Status) {
            try document.validate()
        } catch {
            throw Status(error.code, "\(document.path): \(error.message)")
        }
    }

    private func finish(_ part: ExportFolder.Part) throws(Status) {
        if partCount != part.documentCount {
            throw .invalidArgument(
                "\(part.metadataPath): its files hold \(partCount) documents, not \(part.documentCount) as "
                    + "\(folder.path) says.")
        }
        partIndex += 1
        fileIndex = 0
        partCount = 0
    }
}
