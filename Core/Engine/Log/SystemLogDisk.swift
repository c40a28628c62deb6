import Glibc
import HearthModel
import Synchronization

/// The log's files in a folder of their own, which is made with the first of them.
package final class SystemLogDisk: LogDisk {
    private let folder: String
    /// Whether the folder's own name is durable.
    private let isFolderDurable = Atomic(false)

    /// The base's files, which were there when the log was opened.
    private let baseFiles: [(path: String, identity: FileIdentity)]

    /// - Parameter baseFiles: files that `checkBase` looks for.
    package init(folder: String, baseFiles: [String] = []) {
        self.folder = folder
        self.baseFiles = baseFiles.compactMap { path in FileIdentity(path: path).map { (path, $0) } }
    }

    /// Large writes become large units of the page cache, and each `fdatasync` would work on a whole one.
    private static let zeroBytes = 4096

    package func path(_ name: String) -> String { folder + "/" + name }

    fileprivate static func failure(_ action: String) -> Status {
        .unavailable("cannot \(action) the log: \(String(cString: strerror(errno))).")
    }

    package func names() throws(Status) -> [String] {
        guard let listing = opendir(folder) else {
            if errno == ENOENT { return [] }
            throw Self.failure("find")
        }
        defer { closedir(listing) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(listing) else {
                // A log whose files aren't found would begin anew.
                if errno != 0 { throw Self.failure("find") }
                break
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    package func open(_ name: String, isReadOnly: Bool) throws(Status) -> any LogFile {
        let descriptor = Glibc.open(path(name), (isReadOnly ? O_RDONLY : O_RDWR) | O_CLOEXEC)
        if descriptor < 0 { throw Self.failure("open") }
        var information = stat()
        if fstat(descriptor, &information) != 0 {
            let status = Self.failure("open")
            Glibc.close(descriptor)
            throw status
        }
        return SystemLogFile(descriptor, sizeBytes: Int(information.st_size))
    }

    package func make(_ name: String, sizeBytes: Int) throws(Status) {
        var descriptor = Glibc.open(path(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor < 0, errno == ENOENT {
            if mkdir(folder, 0o700) != 0, errno != EEXIST { throw Self.failure("make the folder of") }
            isFolderDurable.store(false, ordering: .relaxed)
            descriptor = Glibc.open(path(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        }
        if descriptor < 0 { throw Self.failure("lengthen") }
        let file = SystemLogFile(descriptor, sizeBytes: sizeBytes)
        defer { file.close() }
        // A full disk is found before anything is written.
        errno = posix_fallocate(descriptor, 0, off_t(sizeBytes))
        if [ENOSPC, EDQUOT, EFBIG].contains(errno) { throw Self.failure("lengthen") }
        let zeros = [UInt8](repeating: 0, count: Self.zeroBytes)
        var position = 0
        while position < sizeBytes {
            let count = min(zeros.count, sizeBytes - position)
            let offset = position
            let result = zeros.withUnsafeBytes { zeros in
                Result { () throws(Status) in
                    try file.write(UnsafeRawBufferPointer(rebasing: zeros[..<count]), at: offset)
                }
            }
            try result.get()
            position += count
        }
        try file.synchronize()
    }

    package func has(_ name: String, _ file: (any LogFile)?) -> Bool {
        guard let found = FileIdentity(path: path(name)) else { return false }
        guard let file = file as? SystemLogFile else { return true }
        return file.identity == found
    }

    package func checkBase() throws(Status) {
        for file in baseFiles where FileIdentity(path: file.path) != file.identity {
            let name = file.path.split(separator: "/").last ?? ""
            throw .unavailable(
                "The file \(name) was deleted or replaced while the server was running. Put it back, or stop the server and "
                    + "restore a backup.")
        }
    }

    private static func parent(_ folder: String) -> String {
        let trimmed = folder.last == "/" ? folder.dropLast() : folder[...]
        return trimmed.lastIndex(of: "/").map { String(trimmed[...$0]) } ?? "."
    }

    package func rename(_ name: String, to newName: String) throws(Status) {
        if Glibc.rename(path(name), path(newName)) != 0 { throw Self.failure("rename a file of") }
    }

    package func remove(_ name: String) throws(Status) {
        if unlink(path(name)) != 0, errno != ENOENT { throw Self.failure("remove a file of") }
    }

    package func synchronizeNames() throws(Status) {
        try Self.synchronize(folder)
        if isFolderDurable.load(ordering: .relaxed) { return }
        try Self.synchronize(Self.parent(folder))
        isFolderDurable.store(true, ordering: .relaxed)
    }

    private static func synchronize(_ folder: String) throws(Status) {
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw failure("open the folder of") }
        defer { Glibc.close(descriptor) }
        if fsync(descriptor) != 0 { throw failure("write the folder of") }
    }

    /// Removes the log of a database that is deleted, or of one that was before this database was made; durably, so that
    /// a database that is made later doesn't find a part of it.
    package static func removeAll(folder: String) throws(Status) {
        let disk = SystemLogDisk(folder: folder)
        for name in try disk.names() { try disk.remove(name) }
        if rmdir(folder) != 0 {
            if errno == ENOENT { return }
            throw failure("remove the folder of")
        }
        try synchronize(parent(folder))
    }
}

private final class SystemLogFile: LogFile {
    private let descriptor: Atomic<Int32>
    let sizeBytes: Int
    let identity: FileIdentity?

    init(_ descriptor: Int32, sizeBytes: Int) {
        self.descriptor = Atomic(descriptor)
        self.sizeBytes = sizeBytes
        identity = FileIdentity(descriptor: descriptor)
    }

    deinit { close() }

    func close() {
        let open = descriptor.exchange(-1, ordering: .acquiringAndReleasing)
        if open >= 0 { Glibc.close(open) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Status) {
        var done = 0
        while done < buffer.count, let base = buffer.baseAddress {
            let count = pread(
                descriptor.load(ordering: .relaxed), base + done, buffer.count - done, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw SystemLogDisk.failure("read") }
            done += count
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(Status) {
        var done = 0
        while done < bytes.count, let base = bytes.baseAddress {
            let count = pwrite(
                descriptor.load(ordering: .relaxed), base + done, bytes.count - done, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw SystemLogDisk.failure("write") }
            done += count
        }
    }

    func synchronize() throws(Status) {
        if fdatasync(descriptor.load(ordering: .relaxed)) != 0 { throw SystemLogDisk.failure("write") }
    }
}
