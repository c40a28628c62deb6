import Glibc
import HearthEngine
import HearthModel

/// The folder with the files of all databases, locked for this process as long as this object lives, or until `unlock`.
///
/// The lock is `flock` on the file `.lock`, which the system releases when the process ends for any reason. The file
/// contains the process's number, for operators; no project's folder begins with a dot.
package final class DataFolder: Sendable {
    let path: String
    private let lock: Int32
    /// What other users of the machine could do with the folder before, in words; nil when they could do nothing.
    let notice: String?

    /// New files and folders are for their owner only.
    private static let folderMode: mode_t = 0o700
    private static let fileMode: mode_t = 0o600

    /// Makes the folder when it doesn't exist, and locks it.
    init(path: String) throws(Status) {
        self.path = path
        try Self.makeFolder(path)
        notice = Self.close(path)
        let lockPath = path + "/" + Self.lockName
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, Self.fileMode)
        if descriptor < 0 { throw Self.failure("open \(lockPath)") }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            let holder = Self.contents(descriptor)
            closeDescriptor(descriptor)
            if code == EWOULDBLOCK {
                throw .failedPrecondition(
                    "Another hearth process\(holder.isEmpty ? "" : " (\(holder))") uses the data folder \(path).")
            }
            throw Self.failure("lock \(lockPath)", code)
        }
        let number = Array(String(getpid()).utf8)
        if ftruncate(descriptor, 0) != 0 || pwrite(descriptor, number, number.count, 0) != number.count {
            let status = Self.failure("write \(lockPath)")
            closeDescriptor(descriptor)
            throw status
        }
        // Last: from here on it is closed with the object, also when the initialiser fails.
        lock = descriptor
    }

    deinit {
        // A process that was forked a moment ago has the same open file until it executes its program.
        unlock()
        closeDescriptor(lock)
    }

    /// Removes other users' access to a data folder that an older version made. A folder that was given to a group
    /// stays so, and a folder that isn't only for data is left alone: new files in it are for their owner only.
    private static func close(_ path: String) -> String? {
        var information = stat()
        let othersMask: mode_t = 0o007
        guard stat(path, &information) == 0, information.st_mode & othersMask != 0,
            information.st_mode & S_ISVTX == 0, exists(path + "/" + lockName)
        else { return nil }
        let sentence = "Other users of this machine could read the data folder \(path)"
        if chmod(path, folderMode) == 0 { return "\(sentence); now only its owner can." }
        return "\(sentence), and can still: \(EngineError.describe(errno: errno))."
    }

    /// Releases the lock before the object's end; nothing may be written afterwards.
    func unlock() { _ = flock(lock, LOCK_UN) }

    /// - Throws: UNAVAILABLE when the folder was deleted or replaced since it was opened: what is written to it then is lost,
    ///   or meets another server's data.
    func checkIsUnmoved() throws(Status) {
        if let held = FileIdentity(descriptor: lock), held == FileIdentity(path: path + "/" + Self.lockName) { return }
        throw .unavailable("The data folder was deleted or replaced while the server was running.")
    }

    private static let lockName = ".lock"

    /// Whether a folder has the file by which servers keep each other out, and databases.
    package static func hasDatabases(_ path: String) throws(Status) -> Bool {
        guard exists("\(path)/\(lockName)") else { return false }
        for name in try names(path) where isFolder("\(path)/\(name)") {
            if try names("\(path)/\(name)").contains(where: DatabaseFileName.isOfDatabase) { return true }
        }
        return false
    }

    /// Whether a folder was used for data before, or contains a copy of such a one.
    static func isOne(_ path: String) throws(Status) -> Bool {
        let names = try names(path)
        if names.contains(lockName) { return true }
        for name in names where isFolder(path + "/" + name) {
            if try self.names(path + "/" + name).contains(where: { $0.hasSuffix(DatabaseFileName.suffix) }) {
                return true
            }
        }
        return false
    }

    /// Whether something exists under a name.
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    static func isFolder(_ path: String) -> Bool {
        var information = stat()
        return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFDIR
    }

    /// Makes a folder, durably, and those above it.
    package static func makeFolder(_ path: String) throws(Status) {
        if mkdir(path, folderMode) == 0 { return try synchronize(parent(path)) }
        if errno == ENOENT, parent(path) != path {
            try makeFolder(parent(path))
            // Only once: some file systems answer ENOENT although all parent folders exist.
            if mkdir(path, folderMode) == 0 { return try synchronize(parent(path)) }
        }
        if errno != EEXIST { throw failure("make the folder \(path)") }
    }

    /// Makes an empty file, unless there is one.
    static func makeFile(_ path: String) throws(Status) {
        // An existing file isn't even opened: closing it would release the locks that SQLite has on it.
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, fileMode)
        if descriptor >= 0 { return closeDescriptor(descriptor) }
        if errno != EEXIST { throw failure("make \(path)") }
    }

    private static func parent(_ path: String) -> String {
        let trimmed = path.utf8.last == UInt8(ascii: "/") ? path.dropLast() : path[...]
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }

    /// Names of the entries of a folder, without `.` and `..`.
    package static func names(_ path: String) throws(Status) -> [String] {
        guard let folder = opendir(path) else { throw failure("read the folder \(path)") }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The contents of a small file as a string; nil when there is none.
    static func read(_ path: String) throws(Status) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure("read \(path)")
        }
        defer { closeDescriptor(descriptor) }
        return contents(descriptor)
    }

    private static func contents(_ descriptor: Int32) -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: 8192) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes a small file, durably and all or nothing.
    static func write(_ string: String, _ path: String) throws(Status) { try write(Array(string.utf8), path) }

    /// The same with bytes, for its owner only.
    /// - Throws: UNAVAILABLE with the system's reason.
    package static func write(_ bytes: [UInt8], _ path: String) throws(Status) {
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, fileMode)
        if descriptor < 0 { throw failure("write \(draft)") }
        var rest = bytes[...]
        var isWritten = true
        while !rest.isEmpty, isWritten {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            isWritten = count > 0
            if isWritten { rest = rest.dropFirst(count) }
        }
        isWritten = isWritten && fsync(descriptor) == 0
        let status = failure("write \(draft)")
        closeDescriptor(descriptor)
        if !isWritten { throw status }
        if rename(draft, path) != 0 { throw failure("write \(path)") }
        try synchronize(parent(path))
    }

    /// Removes a file; false when there was none.
    @discardableResult
    package static func remove(_ path: String) throws(Status) -> Bool {
        if unlink(path) == 0 { return true }
        if errno == ENOENT { return false }
        throw failure("remove \(path)")
    }

    /// Makes the names in a folder durable.
    package static func synchronize(_ folder: String) throws(Status) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw failure("open the folder \(folder)") }
        defer { closeDescriptor(descriptor) }
        if fsync(descriptor) != 0 { throw failure("write the folder \(folder)") }
    }

    /// One sentence with the system's message.
    package static func failure(_ action: String, _ code: Int32 = errno) -> Status {
        let words = "Cannot \(action): \(EngineError.describe(errno: code))."
        return switch code {
        case EACCES, EPERM, EROFS, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG: .failedPrecondition(words)
        default: .unavailable(words)
        }
    }
}

/// `close`, which a method would hide.
private func closeDescriptor(_ descriptor: Int32) {
    close(descriptor)
}
