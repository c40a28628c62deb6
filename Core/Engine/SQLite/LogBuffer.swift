import CSQLite

import Glibc

/// A layer under SQLite that buffers the data that a commit appends to the write-ahead log.
///
/// SQLite writes a commit to the log as one header of 24 bytes and one page for each page that changed, each in a call
/// of its own. A group of commits changes hundreds of pages, and the calls cost more than the bytes. This layer keeps
/// consecutive writes to the log in memory until SQLite requests the sync that makes them durable, or reads, and merges
/// them into a few large ones.
///
/// The difference is not observable: with `synchronous = FULL`, SQLite publishes a commit to readers after the sync,
/// and data that it reads back within a transaction is written out before. A failed write is reported at the sync,
/// where SQLite treats it as any other failure of the commit.
///
/// Only files opened as a log use this layer; all other files use SQLite's "unix-excl" directly. Source: "The SQLite OS
/// Interface or VFS", https://www.sqlite.org/vfs.html.
enum LogBuffer {
    /// Maximum number of buffered bytes.
    fileprivate static let capacityBytes = 1 << 20
    /// Bytes of one call: the layer below takes less than 128 KiB.
    fileprivate static let writeBytesMax = 124 << 10

    /// The name with which databases are opened; nil when the layer can't be registered in this process.
    static let name: String? = register() ? "hearth" : nil

    /// The start of an open log's memory; the file of the layer below follows it.
    fileprivate struct LogFile {
        /// SQLite looks for the methods here.
        var base: sqlite3_file
        var inner: UnsafeMutablePointer<sqlite3_file>
        var buffer: UnsafeMutableRawPointer?
        /// The offset of the buffered bytes in the file.
        var start: Int64 = 0
        var count = 0

        static var sizeBytes: Int { (MemoryLayout<LogFile>.size + 15) & ~15 }

        var methods: sqlite3_io_methods { inner.pointee.pMethods.pointee }

        mutating func write(_ bytes: UnsafeRawPointer, _ length: Int, at offset: Int64) -> Int32 {
            if count > 0, offset != start + Int64(count) || count + length > LogBuffer.capacityBytes {
                let result = flush()
                if result != SQLITE_OK { return result }
            }
            if length > LogBuffer.capacityBytes { return methods.xWrite(inner, bytes, Int32(length), offset) }
            let buffer =
                self.buffer ?? .allocate(byteCount: LogBuffer.capacityBytes, alignment: 4096)
            self.buffer = buffer
            if count == 0 { start = offset }
            (buffer + count).copyMemory(from: bytes, byteCount: length)
            count += length
            return SQLITE_OK
        }

        /// Writes the buffered bytes. When that fails they are dropped: SQLite gives the commit up.
        mutating func flush() -> Int32 {
            guard count > 0, let buffer else { return SQLITE_OK }
            let end = count
            count = 0
            var written = 0
            while written < end {
                let length = min(end - written, LogBuffer.writeBytesMax)
                let result = methods.xWrite(inner, buffer + written, Int32(length), start + Int64(written))
                if result != SQLITE_OK { return result }
                written += length
            }
            return SQLITE_OK
        }
    }

    /// Lives as long as the process: open files point to it.
    nonisolated(unsafe) private static var layer: UnsafeMutablePointer<sqlite3_vfs>?
    nonisolated(unsafe) fileprivate static var below: UnsafeMutablePointer<sqlite3_vfs>?
    nonisolated(unsafe) fileprivate static var logMethods: UnsafeMutablePointer<sqlite3_io_methods>?

    private static func register() -> Bool {
        guard let below = sqlite3_vfs_find("unix-excl") else { return false }
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: makeMethods())
        logMethods = methods
        self.below = below
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: below.pointee)
        layer.pointee.pNext = nil
        layer.pointee.zName = UnsafePointer(strdup("hearth"))
        layer.pointee.szOsFile = Int32(LogFile.sizeBytes) + below.pointee.szOsFile
        layer.pointee.xOpen = { _, path, file, flags, given in
            guard let below = LogBuffer.below, let file else { return SQLITE_CANTOPEN }
            if flags & SQLITE_OPEN_WAL == 0 { return below.pointee.xOpen(below, path, file, flags, given) }
            let memory = UnsafeMutableRawPointer(file)
            let inner = (memory + LogFile.sizeBytes).assumingMemoryBound(to: sqlite3_file.self)
            let result = below.pointee.xOpen(below, path, inner, flags, given)
            // Without methods SQLite doesn't close the file, and a file that failed to open need not be closed.
            let isOpen = result == SQLITE_OK && inner.pointee.pMethods != nil
            let base = sqlite3_file(pMethods: isOpen ? UnsafePointer(LogBuffer.logMethods) : nil)
            memory.bindMemory(to: LogFile.self, capacity: 1).initialize(to: LogFile(base: base, inner: inner))
            return result
        }
        self.layer = layer
        return sqlite3_vfs_register(layer, 0) == SQLITE_OK
    }

    private static func makeMethods() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        // Version 1 has all methods that a log needs; shared memory belongs to the database's file.
        methods.iVersion = 1
        methods.xClose = { file in
            let log = open(file)
            let written = log.pointee.flush()
            log.pointee.buffer?.deallocate()
            let closed = log.pointee.methods.xClose(log.pointee.inner)
            return written == SQLITE_OK ? closed : written
        }
        methods.xRead = { file, bytes, length, offset in
            flushed(file) { $0.methods.xRead($0.inner, bytes, length, offset) }
        }
        methods.xWrite = { file, bytes, length, offset in
            guard let bytes else { return SQLITE_IOERR }
            return open(file).pointee.write(bytes, Int(length), at: offset)
        }
        methods.xTruncate = { file, size in flushed(file) { $0.methods.xTruncate($0.inner, size) } }
        methods.xSync = { file, flags in flushed(file) { $0.methods.xSync($0.inner, flags) } }
        methods.xFileSize = { file, size in flushed(file) { $0.methods.xFileSize($0.inner, size) } }
        methods.xLock = { file, level in flushed(file) { $0.methods.xLock($0.inner, level) } }
        methods.xUnlock = { file, level in flushed(file) { $0.methods.xUnlock($0.inner, level) } }
        methods.xCheckReservedLock = { file, out in flushed(file) { $0.methods.xCheckReservedLock($0.inner, out) } }
        methods.xFileControl = { file, operation, argument in
            flushed(file) { $0.methods.xFileControl($0.inner, operation, argument) }
        }
        methods.xSectorSize = { file in
            let log = open(file)
            return log.pointee.methods.xSectorSize(log.pointee.inner)
        }
        methods.xDeviceCharacteristics = { file in
            let log = open(file)
            return log.pointee.methods.xDeviceCharacteristics(log.pointee.inner)
        }
        return methods
    }
}

private func open(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<LogBuffer.LogFile> {
    UnsafeMutableRawPointer(file!).assumingMemoryBound(to: LogBuffer.LogFile.self)
}

/// Writes the buffered bytes, then continues with the layer below.
private func flushed(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ next: (LogBuffer.LogFile) -> Int32
) -> Int32 {
    let log = open(file)
    let result = log.pointee.flush()
    return result == SQLITE_OK ? next(log.pointee) : result
}
