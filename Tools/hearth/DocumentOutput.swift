import Glibc
import HearthExport
import HearthModel
import HearthToolSupport

/// Where an export goes. It appears under its name when it is whole.
protocol DocumentOutput: AnyObject {
    var fileCount: Int { get }
    var sizeBytes: Int { get }
    /// Whether it goes to standard output: a write may wait for ever, and leaves nothing that `abandon` removes.
    var isStream: Bool { get }
    /// - Parameter fields: in canonical order.
    func write(path: String, fields: [UInt8]) throws(Status)
    /// No document of a collection group follows.
    func end(collectionID: String) throws(Status)
    func finish() throws(Status)
    /// Removes what is unfinished.
    func abandon()
}

/// A managed export.
final class FolderOutput: DocumentOutput {
    private let writer: ExportFolderWriter
    private let replaces: Bool

    init(
        _ path: String, name: String, database: DatabaseName, collectionIDs: [String]?, replaces: Bool
    ) throws(Status) {
        self.replaces = replaces
        writer = try ExportFolderWriter(
            path, name: name, database: database, collectionIDs: collectionIDs, startTime: Self.now())
    }

    private static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }

    var fileCount: Int { writer.fileCount }
    var sizeBytes: Int { writer.sizeBytes }
    var isStream: Bool { false }
    func write(path: String, fields: [UInt8]) throws(Status) { try writer.write(path: path, fields: fields) }
    func end(collectionID: String) throws(Status) { try writer.end(collectionID: collectionID) }
    func finish() throws(Status) { try writer.finish(endTime: Self.now(), replaces: replaces) }
    func abandon() { writer.abandon() }
}

/// NDJSON, in a file or on standard output.
final class LineOutput: DocumentOutput {
    private let path: String
    /// nil for standard output.
    private let partial: String?
    private let sink: FileSink
    private let lines = LineWriter()
    private var isFinished = false

    /// - Parameter path: `-` for standard output.
    init(_ path: String) throws(Status) {
        self.path = path
        if path == "-" {
            partial = nil
            sink = FileSink()
        } else {
            let partial = "\(path).partial-\(getpid())"
            self.partial = partial
            sink = try FileSink(partial)
        }
    }

    var fileCount: Int { partial == nil ? 0 : 1 }
    var sizeBytes: Int { sink.sizeBytes }
    var isStream: Bool { partial == nil }

    func write(path: String, fields: [UInt8]) throws(Status) {
        try sink.write(try lines.line(path: path, fields: fields))
    }

    func end(collectionID: String) {}

    func finish() throws(Status) {
        try sink.finish()
        guard let partial else { return }
        try Folders.move(partial, to: path)
        isFinished = true
        try Folders.syncParent(of: path)
    }

    func abandon() {
        if let partial, !isFinished { unlink(partial) }
    }

    deinit { abandon() }
}
