import Glibc
import HearthModel
import HearthSQLite

/// The right to use a cache: `flock` on its lock file, which the system drops when the process ends, however it ends.
///
/// While a cache is in use the file holds a line about it, which is replaced by "closed" at the end. Another line that is
/// found shows that the last use didn't end in order, so that the database is examined. Any line shows that there was a
/// database: older versions of the client left none, nor does a cache that was cleared.
///
/// After damage it holds "damaged", or `putAsideLine` when nothing is to be examined any more: the database is put aside now,
/// or the damage showed in a use that began with a thorough examination.
package final class CacheLock {
    private var descriptor: Int32
    /// Whether the last use ended in order, or there was none.
    let wasClean: Bool
    /// Whether there was a database.
    let wasUsed: Bool
    private var isExamined = false
    private static let closedLine = "closed\n"
    private static let putAsideLine = "damaged, to be put aside\n"

    /// - Throws: FAILED_PRECONDITION when the cache is in use, by this process or another.
    init(_ file: CacheFile) throws(Status) {
        while true {
            let descriptor = open(file.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            if descriptor < 0 { throw DataFolder.failure("open \(file.lock)") }
            if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
                let code = errno
                let holder = Self.contents(descriptor)
                close(descriptor)
                if code == EWOULDBLOCK { throw Self.inUse(file, holder) }
                throw DataFolder.failure("lock \(file.lock)", code)
            }
            // The file may have been replaced between the two calls.
            var mine = stat()
            var present = stat()
            if fstat(descriptor, &mine) == 0, stat(file.lock, &present) == 0, mine.st_ino == present.st_ino {
                self.descriptor = descriptor
                let contents = Self.contents(descriptor)
                wasUsed = !contents.isEmpty
                wasClean = contents.isEmpty || contents.utf8.starts(with: Self.closedLine.utf8)
                return
            }
            close(descriptor)
        }
    }

    private static func inUse(_ file: CacheFile, _ holder: String) -> Status {
        let line = holder.split(separator: "\n").first ?? ""
        let words = line.utf8.starts(with: "process".utf8) ? " (\(line))" : ""
        return .failedPrecondition(
            "The cache \(file.database) is in use by another client\(words). One process at a time can use it: end that "
                + "client, or give this one another folder or app name.")
    }

    /// - Parameter isExamined: whether the database was examined thoroughly, and no damage was found.
    func markInUse(isExamined: Bool) throws(Status) {
        self.isExamined = isExamined
        try write("process \(getpid())\n")
    }
    /// The next opening examines the database thoroughly, or, when this one did so in vain, puts it aside.
    func markDamaged() { try? write(isExamined ? Self.putAsideLine : "damaged\n") }
    func markPutAside() { try? write(Self.putAsideLine) }
    var isMarkedDamaged: Bool { Self.contents(descriptor).utf8.starts(with: "damaged".utf8) }
    var isMarkedPutAside: Bool { Self.contents(descriptor).utf8.starts(with: Self.putAsideLine.utf8) }

    /// - Parameter isClean: whether nothing is to be examined at the next opening.
    package func release(isClean: Bool) {
        guard descriptor >= 0 else { return }
        if isClean {
            // Overwritten first and then shortened, which a full disk permits. If it fails, the database is examined.
            let bytes = Array(Self.closedLine.utf8)
            if pwrite(descriptor, bytes, bytes.count, 0) == bytes.count { _ = ftruncate(descriptor, bytes.count) }
        }
        unlock()
    }

    /// There is no database any more.
    func releaseCleared() {
        guard descriptor >= 0 else { return }
        _ = ftruncate(descriptor, 0)
        unlock()
    }

    private func unlock() {
        // A process that was forked a moment ago has the same open file until it executes its program.
        _ = flock(descriptor, LOCK_UN)
        close(descriptor)
        descriptor = -1
    }

    deinit { release(isClean: false) }

    private func write(_ string: String) throws(Status) {
        let bytes = Array(string.utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
            let code = errno
            var status = DataFolder.failure("write the cache's lock", code)
            if code == ENOSPC || code == EDQUOT { status.code = .resourceExhausted }
            throw status
        }
    }

    private static func contents(_ descriptor: Int32) -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: 256) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
