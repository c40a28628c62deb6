import HearthEngine
import HearthModel

import Glibc

/// The files of one database: its file, beside it SQLite's write-ahead log and the folder of the log, and `-deleted`.
///
/// Invariants:
///
/// - The logs are begun when the file is durable, and are removed before the file, or after it was renamed to `-deleted`.
///   So a log whose file is missing or empty has lost it, and is never removed or written: it may have commits that
///   nothing else has.
/// - A database is deleted when its file is renamed. What is left then is removed at once, or by the next start; `-deleted`
///   last.
struct DatabaseFiles {
    /// The database's file.
    let path: String

    init(path: String) { self.path = path }

    var logFolder: String { path + DatabaseFileName.logSuffix }
    /// The files that SQLite has open while the database is.
    var inUse: [String] { [path, wal] }
    private var wal: String { path + DatabaseFileName.walSuffix }
    private var deleted: String { path + DatabaseFileName.deletedSuffix }

    /// Whether there is a database: its file, or a log that has lost it.
    func exist() throws(Status) -> Bool {
        if DataFolder.exists(path) { return true }
        return try hasLostFile()
    }

    /// Whether the file is missing, or has no contents, but a log is there.
    func hasLostFile() throws(Status) -> Bool {
        if Self.size(path) > 0 || DataFolder.exists(deleted) { return false }
        if Self.size(wal) > 0 { return true }
        return try !SystemLogDisk(folder: logFolder).names().isEmpty
    }

    private static func size(_ path: String) -> Int {
        var information = stat()
        return stat(path, &information) == 0 ? Int(information.st_size) : 0
    }

    var lostFileStatus: Status {
        let name = EngineError.fileName(path)
        return Status(
            .dataLoss,
            "\(name) is \(DataFolder.exists(path) ? "empty" : "missing"), but its log is there: it was truncated, or lost."
                + " Restore the file and its log from one backup, or delete the database.")
    }

    /// Must not be called while the database is open: see `FileHeader`.
    /// - Throws: DATA_LOSS when there is a log without its file, or whose file has no tables.
    func check() throws(Status) {
        if try hasLostFile() { throw lostFileStatus }
        guard Self.size(path) > 0, Self.size(wal) == 0, try FileHeader.isUnused(path) else { return }
        if try !SystemLogDisk(folder: logFolder).names().isEmpty { throw lostFileStatus }
    }

    /// Deletes the database; false when there is none.
    func delete() throws(Status) -> Bool {
        if try !exist() { return false }
        if rename(path, deleted) != 0 {
            guard errno == ENOENT else { throw DataFolder.failure("delete \(path)") }
            try DataFolder.makeFile(deleted)
        }
        try DataFolder.synchronize(parent)
        try finishDeletion()
        return true
    }

    private var parent: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// Removes what a deletion has left.
    func finishDeletion() throws(Status) {
        guard DataFolder.exists(deleted) else { return }
        // A file that was put there since has a log that was put there, too.
        if !DataFolder.exists(path) {
            try DataFolder.remove(wal)
            try DataFolder.remove(path + DiskProbe.suffix)
            try SystemLogDisk.removeAll(folder: logFolder)
            try DataFolder.synchronize(parent)
        }
        try DataFolder.remove(deleted)
        // Or else a later file of this name would be deleted at a start after a power failure.
        try DataFolder.synchronize(parent)
    }
}
