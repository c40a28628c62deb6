import HearthConcurrency

import Glibc

/// Finds out whether a disk on which a commit failed accepts commits again, by writing a file of its own.
///
/// A small write into the database isn't enough: it may overwrite pages that the failed commit left in the log, which
/// have space on a full disk. The bytes are written at an offset as large as the log, because the system may bound the
/// size of files. When commits fail again soon after the disk seemed to have recovered, they were larger than the
/// probe, and the next one is larger, too.
struct DiskProbe {
    private let file: String
    private var sizeBytes = sizeBytesMin
    private var lastSuccess: MonotonicTime?

    private static let sizeBytesMin = 256 << 10
    private static let sizeBytesMax = 16 << 20
    private static let soonMilliseconds = 60_000

    /// The suffix of a probe's file after the name of the database's file.
    static let suffix = "-probe"

    /// - Parameter path: the path of the database.
    init(path: String) { file = path + Self.suffix }

    /// - Parameter walPages: the log's length.
    mutating func succeeds(walPages: Int) -> Bool {
        if let last = lastSuccess {
            let isSoon = MonotonicTime.now < last.advanced(milliseconds: Self.soonMilliseconds)
            sizeBytes = isSoon ? min(sizeBytes * 2, Self.sizeBytesMax) : Self.sizeBytesMin
            lastSuccess = nil
        }
        let written = write(at: walPages * FileFormat.logPageSizeBytes)
        if written { lastSuccess = MonotonicTime.now }
        return written
    }

    private func write(at offset: Int) -> Bool {
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        defer {
            close(descriptor)
            unlink(file)
        }
        let chunk = [UInt8](repeating: 0, count: 64 << 10)
        var position = 0
        while position < sizeBytes {
            let count = pwrite(descriptor, chunk, min(chunk.count, sizeBytes - position), off_t(offset + position))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return false }
            position += count
        }
        return fsync(descriptor) == 0
    }
}
