import Glibc

/// The attributes of a file that show a change.
package struct FileStamp: Equatable, Sendable {
    private var node: UInt
    private var size: Int
    private var seconds: Int
    private var nanoseconds: Int

    /// Nil when there is no such file.
    package init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        node = UInt(status.st_ino)
        size = Int(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// When it was written, in microseconds since 1970.
    var changedMicroseconds: Int64 { Int64(seconds) * 1_000_000 + Int64(nanoseconds / 1000) }
}
