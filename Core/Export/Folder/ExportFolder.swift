import Glibc
import HearthModel
import HearthWire

/// A managed export that was found whole as far as its metadata goes: all files are there, inside of its folder, and
/// each once. `reader` reads its documents.
package struct ExportFolder: Sendable {
    /// What one `export_metadata` file lists.
    package struct Part: Sendable {
        /// The collection group; nil for all.
        package var collectionID: String?
        package var metadataPath: String
        /// Paths of the files that hold the documents.
        package var files: [String]
        package var documentCount: Int
    }

    /// The file that lists the parts.
    package let path: String
    package let parts: [Part]

    package var documentCount: Int { parts.reduce(0) { $0 + $1.documentCount } }
    package var fileCount: Int { parts.reduce(0) { $0 + $1.files.count } }
    /// Bytes of the files that hold the documents.
    package let sizeBytes: Int

    private static let suffix = ".overall_export_metadata"

    /// The file of an export that lists its parts.
    /// - Parameter path: that file, or the folder that has one.
    /// - Returns: nil when there is none.
    /// - Throws: INVALID_ARGUMENT when a folder has more than one.
    package static func find(_ path: String) throws(Status) -> String? {
        var status = stat()
        if stat(path, &status) != 0 { throw FileFailure.status("read", path) }
        if status.st_mode & S_IFMT != S_IFDIR { return path.hasSuffix(suffix) ? path : nil }
        let files = try Folders.names(path).filter { $0.hasSuffix(suffix) }
        if files.count > 1 {
            throw .invalidArgument("\(path) holds \(files.count) exports: name one *\(suffix).")
        }
        return files.first.map { path + (path.hasSuffix("/") ? "" : "/") + $0 }
    }

    /// - Parameter path: a folder, or its `*.overall_export_metadata`.
    /// - Throws: an error that names the file that is missing or damaged.
    package init(_ path: String) throws(Status) {
        guard let file = try Self.find(path) else {
            throw .invalidArgument("There is no export in \(path): a folder with one file *\(Self.suffix) is expected.")
        }
        self.path = file
        let folder = Folders.lastSlash(file).map { String(file[..<$0]) + "/" } ?? "./"
        var files = FileSet(root: try Folders.resolved(folder))
        var parts: [Part] = []
        for pointer in try Self.pointers(file) {
            parts.append(try Self.part(pointer, folder: folder, named: file, &files))
        }
        self.parts = parts
        sizeBytes = parts.reduce(0) { $0 + $1.files.reduce(0) { $0 + Folders.sizeBytes(ofFile: $1) } }
    }

    private static func pointers(_ file: String) throws(Status) -> [ExportPointerMessage] {
        let log = LogReader(try FileSource(file), recordBytesMax: Limits.exportMetadataBytesMax)
        let version = try log.next { Array($0) }
        guard version == [UInt8(ascii: "3")] else {
            throw .invalidArgument("\(file): this is no export of version 3.")
        }
        let message = try log.next { record throws(Status) in try OverallExportMessage(protobuf: record) }
        if try log.next({ _ in true }) != nil {
            throw .invalidArgument("\(file) has more records than an export of version 3.")
        }
        return message?.pointers ?? []
    }

    private static func part(
        _ pointer: ExportPointerMessage, folder: String, named file: String, _ files: inout FileSet
    ) throws(Status) -> Part {
        // The counts of all parts have a sum.
        guard let count = Int(exactly: pointer.entityCount), 0...Limits.exportPartDocumentsMax ~= count else {
            throw .invalidArgument("\(file): a part with \(pointer.entityCount) documents is malformed.")
        }
        let metadata = try files.take(pointer.path, in: folder, named: file)
        let message: ExportMetadataMessage
        do throws(Status) {
            let bytes = try FileSource.contents(metadata, sizeBytesMax: Limits.exportMetadataBytesMax)
            message = try ExportMetadataMessage(protobuf: bytes)
        } catch {
            throw error.message.contains(metadata) ? error : Status(error.code, "\(metadata): \(error.message)")
        }
        let own = Folders.lastSlash(metadata).map { String(metadata[..<$0]) + "/" } ?? "./"
        var paths: [String] = []
        for name in message.files.flatMap(\.names) { paths.append(try files.take(name, in: own, named: metadata)) }
        let set = pointer.entitySet
        return Part(
            collectionID: set?.kindType == 1 ? set?.kind : nil, metadataPath: metadata, files: paths,
            documentCount: count)
    }

    /// Reads the documents.
    /// - Parameters:
    ///   - target: the database that references into the source are moved to; nil keeps them.
    package func reader(target: DatabaseName? = nil) -> ExportFolderReader {
        ExportFolderReader(self, target: target)
    }
}

/// The files that an export's metadata name: each inside of the export's folder, and each once.
private struct FileSet {
    /// The folder, with all links resolved.
    let root: String
    /// Their bytes: two spellings of an accent are two files.
    private var seen: Set<[UInt8]> = []

    init(root: String) { self.root = root }

    /// The path of a file that `source` names.
    mutating func take(_ name: String, in folder: String, named source: String) throws(Status) -> String {
        let (path, resolved) = try Folders.path(name, in: folder, below: root, named: source)
        guard seen.insert(Array(resolved.utf8)).inserted else {
            throw .invalidArgument("\(source) names a file for the second time: \(name).")
        }
        return path
    }
}
