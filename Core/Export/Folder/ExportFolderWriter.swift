import Glibc
import HearthModel
import HearthWire

/// Writes a managed export: into a folder beside its final name, which it takes when all is durable. What is unfinished
/// is named `….partial-PID`, and has no `*.overall_export_metadata`. The writer holds a lock on it (`FolderLock`).
///
/// Not for several threads at once.
package final class ExportFolderWriter {
    /// The files of one collection group, or of all.
    private final class Part {
        let collectionID: String?
        /// Relative to the export: `all_namespaces/kind_K/`.
        let folder: String
        var files: [String] = []
        var log: LogWriter?
        var documentCount = 0
        var sizeBytes = 0

        init(collectionID: String?) {
            self.collectionID = collectionID
            folder = "all_namespaces/" + (collectionID.map { "kind_\($0)" } ?? "all_kinds") + "/"
        }

        var metadataPath: String {
            folder + "all_namespaces_" + (collectionID.map { "kind_\($0)" } ?? "all_kinds") + ".export_metadata"
        }

        /// The service's name for what a file holds.
        var label: String { collectionID ?? "__all__" }
    }

    private let target: String
    private let partial: String
    private let lock: FolderLock
    private let name: String
    private let startTime: Timestamp
    private let fileBytesMax: Int
    private var entities: EntityWriter
    private let parts: [Part]
    /// Folders below `partial`, which must be durable.
    private var folders: [String] = []
    private var isFinished = false

    package private(set) var documentCount = 0
    package var fileCount: Int { parts.reduce(0) { $0 + $1.files.count } }
    /// Bytes of finished and begun files.
    package var sizeBytes: Int { parts.reduce(0) { $0 + $1.sizeBytes + ($1.log?.sizeBytes ?? 0) } }

    /// - Parameters:
    ///   - path: the final path of the export. Only `finish` touches it.
    ///   - partial: the path until then, in the same folder; nil for `path.partial-PID`.
    ///   - name: of the export; its first file is `name.overall_export_metadata`.
    ///   - database: of the documents.
    ///   - collectionIDs: the collection groups that are exported, each with files of its own; nil for all in one.
    ///   - startTime: goes into the metadata.
    ///   - fileBytesMax: after so many bytes another file begins.
    /// - Throws: ALREADY_EXISTS when another writer fills the same folder; why it cannot be created.
    package init(
        _ path: String, partial: String? = nil, name: String, database: DatabaseName, collectionIDs: [String]? = nil,
        startTime: Timestamp, fileBytesMax: Int = Limits.exportFileBytesMax
    ) throws(Status) {
        target = Folders.withoutEnd(path)
        let partial = partial ?? "\(target).partial-\(getpid())"
        self.partial = partial
        self.name = name
        self.startTime = startTime
        self.fileBytesMax = fileBytesMax
        entities = EntityWriter(database: database)
        if let collectionIDs {
            parts = collectionIDs.map { Part(collectionID: $0) }
        } else {
            parts = [Part(collectionID: nil)]
        }
        try Self.checkNames([name + Self.overallSuffix, Folders.name(partial)], parts)
        lock = try FolderLock.create(partial, for: target)
    }

    /// A name that no file can have is not first noticed when all else is written.
    private static func checkNames(_ names: [String], _ parts: [Part]) throws(Status) {
        let names = names + parts.map { Folders.name($0.metadataPath) }
        if let name = names.first(where: { $0.utf8.count > Int(NAME_MAX) }) {
            throw .invalidArgument(
                "The export would have a file \"\(name)\", whose name is longer than \(NAME_MAX) bytes.")
        }
    }

    /// Removes what is unfinished. Nothing may be written afterwards.
    package func abandon() {
        if !isFinished { Folders.remove(partial) }
    }

    deinit { abandon() }

    /// - Parameters:
    ///   - path: below the database.
    ///   - fields: in canonical order.
    /// - Throws: INVALID_ARGUMENT when the export does not have the document's collection group.
    package func write(path: String, fields: [UInt8]) throws(Status) {
        let record = try entities.record(path: path, fields: fields)
        let part = try part(of: path)
        let log = try log(of: part)
        try log.append(record)
        part.documentCount += 1
        documentCount += 1
        if log.sizeBytes >= fileBytesMax { try close(part) }
    }

    private func part(of path: String) throws(Status) -> Part {
        if parts.count == 1, parts[0].collectionID == nil { return parts[0] }
        let id = ExportedDocument(path: path, fields: []).collectionID
        guard let part = parts.first(where: { $0.collectionID.map { $0.utf8.elementsEqual(id.utf8) } ?? false }) else {
            throw .invalidArgument("\(path) is in none of the collection groups that are exported.")
        }
        return part
    }

    private func log(of part: Part) throws(Status) -> LogWriter {
        if let log = part.log { return log }
        if part.files.isEmpty { try makeFolder(part) }
        let name = "output-\(part.files.count)"
        let log = LogWriter(try FileSink("\(partial)/\(part.folder)\(name)"))
        part.files.append(name)
        part.log = log
        return log
    }

    private func makeFolder(_ part: Part) throws(Status) {
        for folder in ["\(partial)/all_namespaces", Folders.withoutEnd("\(partial)/\(part.folder)")]
        where !folders.contains(where: { $0.utf8.elementsEqual(folder.utf8) }) {
            try Folders.create(folder)
            folders.append(folder)
        }
    }

    /// No document of a collection group follows: its file is closed, so that many groups do not need as many descriptors.
    package func end(collectionID: String) throws(Status) {
        for part in parts where part.collectionID.map({ $0.utf8.elementsEqual(collectionID.utf8) }) ?? false {
            try close(part)
        }
    }

    private func close(_ part: Part) throws(Status) {
        guard let log = part.log else { return }
        try log.finish()
        part.sizeBytes += log.sizeBytes
        part.log = nil
    }

    // MARK: The end

    /// The end of the name of an export's overall file.
    package static let overallSuffix = ".overall_export_metadata"

    /// Makes all durable, writes the metadata, and gives the export its name.
    /// - Parameters:
    ///   - endTime: goes into the metadata.
    ///   - replaces: an export or a folder of that name is replaced. Otherwise only an empty folder may be there.
    package func finish(endTime: Timestamp, replaces: Bool) throws(Status) {
        for part in parts { try close(part) }
        var overall = OverallExportMessage()
        // Without documents, an export of all has no part: a part without files is one of a group.
        for part in parts where part.documentCount > 0 || part.collectionID != nil {
            try writeMetadata(part, endTime)
            overall.pointers.append(pointer(part))
        }
        for folder in folders { try Folders.sync(folder) }
        let log = LogWriter(try FileSink("\(partial)/\(name)\(Self.overallSuffix)"))
        try log.append([UInt8(ascii: "3")])
        if !overall.pointers.isEmpty { try log.append(overall.protobuf()) }
        try log.finish()
        try Folders.sync(partial)
        try Folders.finish(partial, as: target, replaces: replaces, marker: Self.overallSuffix)
        isFinished = true
    }

    private func writeMetadata(_ part: Part, _ endTime: Timestamp) throws(Status) {
        if part.files.isEmpty { try makeFolder(part) }
        var files = ExportMetadataMessage.Files()
        files.label = part.label
        files.names = part.files
        files.labels = [ExportMetadataMessage.Label(label: part.label)]
        files.sizeBytes = Int64(part.sizeBytes)
        let message = ExportMetadataMessage(
            run: ExportMetadataMessage.Run(
                name: name, startMicroseconds: startTime.microseconds, endMicroseconds: endTime.microseconds),
            files: part.files.isEmpty ? [] : [files])
        let sink = try FileSink("\(partial)/\(part.metadataPath)")
        try sink.write(message.protobuf())
        try sink.finish()
    }

    private func pointer(_ part: Part) -> ExportPointerMessage {
        let set = EntitySetMessage(
            kindType: part.collectionID == nil ? 2 : 1, kind: part.collectionID ?? "", namespaceType: 3)
        return ExportPointerMessage(
            entitySet: set, path: part.metadataPath, entityCount: Int64(part.documentCount),
            sizeBytes: Int64(part.sizeBytes))
    }
}
