import HearthModel

import Glibc

/// A check of the first bytes of a database file, which recognises a file of a newer hearth without opening it: so that
/// a server fails to start instead of failing at the first request. Source: "Database File Format" of SQLite, 1.3.
enum FileHeader {
    private static let sizeBytes = 100
    private static let userVersionOffset = 60
    private static let applicationIDOffset = 68

    /// - Throws: FAILED_PRECONDITION for a file of a newer format. Other defects are found when the file is opened; so
    ///   is a version that is still in the log after a crash of the newer program.
    ///
    /// Must not be called for a file that this process has open: closing any descriptor of a file releases the
    /// process's locks on it.
    static func check(_ path: String) throws(Status) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw DataFolder.failure("read \(path)") }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: sizeBytes)
        guard pread(descriptor, &bytes, sizeBytes, 0) == sizeBytes, bytes.starts(with: Array("SQLite format 3".utf8)),
            number(bytes, at: applicationIDOffset) == FileFormat.applicationID
        else { return }
        let version = number(bytes, at: userVersionOffset)
        if version > FileFormat.version { throw FileFormat.newer(path, version) }
    }

    /// Whether no tables were made in a file yet. The same holds as for `check`.
    static func isUnused(_ path: String) throws(Status) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw DataFolder.failure("read \(path)") }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: sizeBytes)
        return pread(descriptor, &bytes, sizeBytes, 0) == sizeBytes && number(bytes, at: userVersionOffset) == 0
            && bytes.starts(with: Array("SQLite format 3".utf8))
    }

    private static func number(_ bytes: [UInt8], at offset: Int) -> Int {
        bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
}
