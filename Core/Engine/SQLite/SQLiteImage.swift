import CSQLite
import HearthConcurrency
import HearthEngine
import HearthModel
import Synchronization

/// The database file as a read transaction shows it, page by page.
///
/// A page of the image is its last form in the WAL up to the transaction's end of it, or else the page of the file. The
/// transaction keeps both as they are: a checkpoint copies nothing that is later into the file, and no commit begins the WAL
/// anew. Reading the two files in large parts costs a tenth of what reading each page through SQLite does, and memory for
/// one number a page of the WAL.
/// Sources: "WAL-mode File Format", https://www.sqlite.org/walformat.html; "The SQLite OS Interface or VFS".
///
/// `@unchecked Sendable`: used by one thread at a time; `connection` has a lock of its own, for `revoke`.
final class SQLiteImage: SQLiteView, Snapshot, StoreImage, @unchecked Sendable {
    private let path: String
    private let images: SQLiteImages
    private let pages: Int
    /// Frames of the WAL that belong to the image; 0 when the file has everything.
    private let logFrames: Int
    /// For each page that is in the WAL, in order: its number in the upper half, its last frame in the lower one. Nil before
    /// the first read.
    private var frames: [UInt64]?
    private var isClosed = false

    private static let frameHeaderBytes = 24
    private static let logHeaderBytes = 32
    /// SQLITE_IOERR_SHORT_READ, a macro that isn't imported.
    private static let shortRead = SQLITE_IOERR | 2 << 8
    /// The layers below take less than 128 KiB.
    private static let readBytesMax = 64 << 10

    /// Must be called while no commit is under way.
    init(path: String, counters: StoreCounters, images: SQLiteImages) throws(Status) {
        self.path = path
        self.images = images
        let connection = try Connection(
            path: path,
            configuration: ["PRAGMA query_only = ON", "PRAGMA mmap_size = 0", "PRAGMA cache_size = 16"],
            isReadOnly: true)
        do throws(Status) {
            let lease = try connection.beginReading(counters)
            let action = "cannot read \(EngineError.fileName(path))"
            pages = try connection.number("PRAGMA page_count", action)
            // Nothing else begins the WAL anew now. When it was fully copied as the transaction began, the transaction keeps
            // the file as it is, and doesn't use the WAL. When it becomes so later, the file has everything, too.
            guard let index = connection.logIndex else {
                throw .internalError("\(EngineError.fileName(path)) has no index of its WAL.")
            }
            logFrames = index.isFullyCopied ? 0 : Int(index.pages)
            super.init(connection, lease: lease)
        } catch {
            connection.close()
            throw error
        }
        images.add(self, path)
    }

    deinit { close() }

    var sizeBytes: Int { pages * FileFormat.pageSizeBytes }

    var contents: any Snapshot { self }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(Status) {
        try connection.enter(lease)
        defer { connection.leave() }
        if frames == nil { frames = try readFrames() }
        let file = try file(SQLITE_FCNTL_FILE_POINTER)
        var sizeBytes: Int64 = 0
        try check(file.pointee.pMethods.pointee.xFileSize(file, &sizeBytes))
        var start = 0
        while start < buffer.count {
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer[start..<min(start + Self.readBytesMax, buffer.count)])
            try readPart(at: offset + start, into: part, file, fileBytes: Int(sizeBytes))
            start += part.count
        }
    }

    private func readPart(
        at offset: Int, into part: UnsafeMutableRawBufferPointer, _ file: UnsafeMutablePointer<sqlite3_file>,
        fileBytes: Int
    ) throws(Status) {
        let pageBytes = FileFormat.pageSizeBytes
        let inFile = min(part.count, max(0, fileBytes - offset))
        if inFile > 0 {
            try check(
                file.pointee.pMethods.pointee.xRead(file, part.baseAddress, Int32(inFile), Int64(offset)))
        }
        let first = offset / pageBytes + 1
        var missing = (part.count - inFile + pageBytes - 1) / pageBytes
        let end = first + part.count / pageBytes
        guard let frames, !frames.isEmpty else {
            if missing > 0 { throw lost() }
            return
        }
        let log = try self.file(SQLITE_FCNTL_JOURNAL_POINTER)
        var index = Self.firstIndex(of: first, in: frames)
        while index < frames.count, frames[index] >> 32 < UInt64(end) {
            let page = Int(frames[index] >> 32)
            let frame = Int(frames[index] & 0xFFFF_FFFF)
            let target = (page - first) * pageBytes
            try check(
                log.pointee.pMethods.pointee.xRead(
                    log, part.baseAddress.map { $0 + target }, Int32(pageBytes),
                    Int64(Self.position(frame) + Self.frameHeaderBytes)))
            if target + pageBytes > inFile { missing -= 1 }
            index += 1
        }
        if missing > 0 { throw lost() }
    }

    private func lost() -> Status {
        Status(.dataLoss, "\(EngineError.fileName(path)) is shorter than its contents.")
    }

    /// The first of the pages from `page` on.
    private static func firstIndex(of page: Int, in frames: [UInt64]) -> Int {
        var range = 0..<frames.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range =
                frames[middle] >> 32 < UInt64(page)
                ? (middle + 1)..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }

    private static func position(_ frame: Int) -> Int { logHeaderBytes + (frame - 1) * FileFormat.logPageSizeBytes }

    private func readFrames() throws(Status) -> [UInt64] {
        if logFrames == 0 { return [] }
        let log = try file(SQLITE_FCNTL_JOURNAL_POINTER)
        let header = try bytes(of: log, at: 0, count: Self.logHeaderBytes)
        var found: [UInt64] = []
        found.reserveCapacity(logFrames)
        for frame in 1...logFrames {
            let head = try bytes(of: log, at: Self.position(frame), count: 16)
            // The salts, which change when the WAL is begun anew.
            guard head[8..<16] == header[16..<24] else {
                throw Status(.dataLoss, "\(EngineError.fileName(path))'s WAL has a page of another one.")
            }
            let page = head[0..<4].reduce(0) { $0 << 8 | UInt64($1) }
            if page > 0, page <= UInt64(pages) { found.append(page << 32 | UInt64(frame)) }
        }
        found.sort()
        // The last frame of each page.
        var count = 0
        for index in found.indices where index + 1 == found.count || found[index] >> 32 != found[index + 1] >> 32 {
            found[count] = found[index]
            count += 1
        }
        found.removeLast(found.count - count)
        return found
    }

    private func bytes(
        of file: UnsafeMutablePointer<sqlite3_file>, at offset: Int, count: Int
    ) throws(Status) -> [UInt8] {
        var result = SQLITE_OK
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            result = file.pointee.pMethods.pointee.xRead(file, buffer.baseAddress, Int32(count), Int64(offset))
            buffer.baseAddress?.update(repeating: 0, count: result == SQLITE_OK ? 0 : count)
            length = count
        }
        try check(result)
        return bytes
    }

    private func file(_ operation: Int32) throws(Status) -> UnsafeMutablePointer<sqlite3_file> {
        var file: UnsafeMutablePointer<sqlite3_file>?
        try check(sqlite3_file_control(connection.handle, nil, operation, &file))
        guard let file, file.pointee.pMethods != nil else { throw lost() }
        return file
    }

    private func check(_ result: Int32) throws(Status) {
        if result == SQLITE_OK { return }
        if result == Self.shortRead { throw lost() }
        throw .unavailable(
            "Cannot read \(EngineError.fileName(path)): \(String(cString: sqlite3_errstr(result))) (\(result)).")
    }

    /// Takes the image away from its holder, whose next read fails.
    func revoke() -> Bool {
        // The file may be that of another store by now, with numbers of its own.
        let isRevoked = connection.revoke(begunUpTo: .max)
        if isRevoked { images.remove(self, path) }
        return isRevoked
    }

    func close() {
        if isClosed { return }
        isClosed = true
        connection.close()
        images.remove(self, path)
    }
}

/// The open images, by file. They outlive the stores that they were made by, and keep SQLite's WAL from being copied in
/// those that are opened after them.
final class SQLiteImages: Sendable {
    private struct Held {
        weak var image: SQLiteImage?
    }

    private let held = Mutex<[String: [ObjectIdentifier: Held]]>([:])

    func add(_ image: SQLiteImage, _ path: String) {
        held.withLock { $0[path, default: [:]][ObjectIdentifier(image)] = Held(image: image) }
    }

    func remove(_ image: SQLiteImage, _ path: String) {
        held.withLock { held in
            held[path]?[ObjectIdentifier(image)] = nil
            if held[path]?.isEmpty == true { held[path] = nil }
        }
    }

    /// Takes all images of a file away; returns how many there were.
    func revoke(_ path: String) -> Int {
        let found = held.withLock { $0[path]?.values.compactMap(\.image) ?? [] }
        return found.count { $0.revoke() }
    }
}
