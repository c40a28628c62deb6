import CSQLite

/// How long the WAL is and how much of it is copied, from the header of SQLite's own index of it.
///
/// SQLite 3.7.0 to 3.51.2 have a defect (https://www.sqlite.org/wal.html#walresetbug): a checkpoint that begins on a
/// fully copied log, beside a writer that restarts the log at that moment, works with stale data of the old log and
/// marks pages as copied that never were. A log that isn't fully copied can't be restarted. So a thread that
/// checkpoints beside a writer checks here first, and leaves a fully copied log alone. Only one thread may checkpoint
/// at a time.
///
/// Source: "The WAL-Index File Format", https://www.sqlite.org/walformat.html.
package struct LogIndex: Equatable {
    /// Pages in the log that are committed.
    var pages: UInt32
    /// How many of them are in the database.
    var copiedPages: UInt32

    package var isFullyCopied: Bool { copiedPages >= pages }

    /// - Parameter handle: of a connection that has read from the database.
    /// - Returns: nil when there is no index, or it has another format.
    package init?(_ handle: OpaquePointer?) {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, nil, SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK, let file,
            let found = Self.read(file)
        else { return nil }
        self = found
    }

    init(pages: UInt32, copiedPages: UInt32) {
        self.pages = pages
        self.copiedPages = copiedPages
    }

    /// - Parameter file: the file of a database.
    static func read(_ file: UnsafeMutablePointer<sqlite3_file>) -> LogIndex? {
        guard let methods = file.pointee.pMethods, methods.pointee.iVersion >= 2,
            let map = methods.pointee.xShmMap, let barrier = methods.pointee.xShmBarrier
        else { return nil }
        var region: UnsafeMutableRawPointer?
        guard map(file, 0, regionBytes, 0, &region) == SQLITE_OK, let region else { return nil }
        guard region.load(as: UInt32.self) == format else { return nil }
        // A writer that restarts the log first stores that there are no pages, then that none is copied. Read in this
        // order, and twice, the two never seem to belong to a log with uncopied pages when it is just being restarted.
        var found = load(region)
        barrier(file)
        if !found.isFullyCopied { found = load(region) }
        return found
    }

    private static func load(_ region: UnsafeMutableRawPointer) -> LogIndex {
        let copied = region.load(fromByteOffset: copiedOffset, as: UInt32.self)
        return LogIndex(pages: region.load(fromByteOffset: pagesOffset, as: UInt32.self), copiedPages: copied)
    }

    private static let format: UInt32 = 3_007_000
    private static let regionBytes: Int32 = 32_768
    /// "mxFrame" of the first copy of the header.
    private static let pagesOffset = 16
    /// "nBackfill", after the two copies of the header.
    private static let copiedOffset = 96
}
