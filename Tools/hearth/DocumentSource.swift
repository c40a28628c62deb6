import HearthExport
import HearthModel

/// Documents for an import, which may be read several times.
struct DocumentSource {
    private enum Form {
        case folder(ExportFolder)
        /// nil for standard input.
        case lines(String?)
    }

    /// One reading.
    final class Reading {
        private enum Form {
            case folder(ExportFolderReader)
            case lines(LineReader)
        }

        private let form: Form
        /// Their bytes: two spellings of an accent are two ids.
        private let collectionIDs: Set<[UInt8]>?

        fileprivate init(_ folder: ExportFolderReader, _ collectionIDs: Set<[UInt8]>?) {
            form = .folder(folder)
            self.collectionIDs = collectionIDs
        }

        fileprivate init(_ lines: LineReader, _ collectionIDs: Set<[UInt8]>?) {
            form = .lines(lines)
            self.collectionIDs = collectionIDs
        }

        var legacyValueCount: Int {
            if case .folder(let reader) = form { reader.legacyValueCount } else { 0 }
        }

        var consumedBytes: Int {
            switch form {
            case .folder(let reader): reader.consumedBytes
            case .lines(let reader): reader.consumedBytes
            }
        }

        /// The next document that is wanted; nil at the end.
        /// - Parameter validates: all documents are checked, wanted or not.
        func next(validates: Bool) throws(Status) -> ExportedDocument? {
            while let document = try read(validates) {
                if let collectionIDs, !collectionIDs.contains(Array(document.collectionID.utf8)) { continue }
                return document
            }
            return nil
        }

        private func read(_ validates: Bool) throws(Status) -> ExportedDocument? {
            switch form {
            case .folder(let reader): return try reader.next(validates: validates)
            case .lines(let reader):
                guard let document = try reader.next() else { return nil }
                if !validates { return document }
                do throws(Status) {
                    try document.validate()
                } catch {
                    throw reader.failure("\(document.path): \(error.message)")
                }
                return document
            }
        }
    }

    private let form: Form
    private let collectionIDs: Set<[UInt8]>?

    /// - Parameter path: of a managed export, of NDJSON, or `-`.
    /// - Throws: an error that names what is missing or damaged.
    init(_ path: String, collectionIDs: [String]?) throws(Status) {
        self.collectionIDs = collectionIDs.map { Set($0.map { Array($0.utf8) }) }
        if path == "-" {
            form = .lines(nil)
        } else if try ExportFolder.find(path) != nil {
            form = .folder(try ExportFolder(path))
        } else if Folders.isFolder(path) {
            throw .invalidArgument(
                "There is no export in \(path): it has neither \(SuiteFolder.metadataName) nor a file "
                    + "*.overall_export_metadata.")
        } else {
            form = .lines(path)
        }
    }

    /// The managed export; nil for NDJSON.
    var folder: ExportFolder? {
        if case .folder(let folder) = form { folder } else { nil }
    }

    /// Whether it can be read only once.
    var isStream: Bool {
        if case .lines(nil) = form { true } else { false }
    }

    /// The number of documents that it claims to have; nil when it does not say.
    var documentCount: Int? {
        if case .folder(let folder) = form, collectionIDs == nil { folder.documentCount } else { nil }
    }

    /// - Parameter target: the database that references into the source are moved to; nil keeps them.
    func read(target: DatabaseName?) throws(Status) -> Reading {
        switch form {
        case .folder(let folder): return Reading(folder.reader(target: target), collectionIDs)
        case .lines(let path):
            guard let path else { return Reading(LineReader(FileSource(), target: target), collectionIDs) }
            return Reading(LineReader(try FileSource(path), target: target), collectionIDs)
        }
    }
}
