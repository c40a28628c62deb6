import CLinux
import HearthModel
import HearthSQLite

import Glibc

/// A folder that files of a backup are written to, under a name that says so until all are durable.
///
/// A file's data is written to the disk as it comes, so that the end waits for little and other writers of the disk are not
/// held up by much at once.
package final class BackupFolder: BackupTarget {
    package let path: String
    /// The files so far, with their digests; without the manifest.
    package private(set) var files: [BackupManifest.File] = []
    /// The manifest, when it is there.
    package private(set) var manifest: [UInt8]?
    /// Bytes so far.
    package private(set) var sizeBytes = 0
    private var folders: Set<String> = []
    private var names: Set<String> = []
    private var current: (path: String, descriptor: Int32, left: Int, unsynced: Int, digest: SHA256Digest)?

    private static let syncBytes = 4 << 20

    /// Makes the folder.
    /// - Throws: FAILED_PRECONDITION or UNAVAILABLE with the system's reason.
    package init(_ path: String) throws(Status) {
        self.path = path
        if mkdir(path, 0o700) != 0 { throw DataFolder.failure("make the folder \(path)") }
    }

    deinit { if let current { Glibc.close(current.descriptor) } }

    package func begin(_ path: String, bytes: Int) throws(Status) {
        if let problem = BackupPath.problem(path) {
            throw Status(.dataLoss, "The name \"\(path.prefix(200))\" of a file \(problem).")
        }
        if !names.insert(path).inserted { throw Status(.dataLoss, "The file \(path) is there twice.") }
        if path == BackupManifest.fileName {
            guard bytes <= Limits.backupManifestBytesMax else {
                throw Status(.dataLoss, "\(path) has \(bytes) bytes.")
            }
            manifest = []
        }
        var folder = path[...]
        var made: [String] = []
        while let slash = folder.utf8.lastIndex(of: UInt8(ascii: "/")) {
            folder = folder[..<slash]
            if folders.contains(String(folder)) { break }
            made.append(String(folder))
        }
        for name in made.reversed() {
            if mkdir("\(self.path)/\(name)", 0o700) != 0, errno != EEXIST {
                throw DataFolder.failure("make the folder \(self.path)/\(name)")
            }
            folders.insert(name)
        }
        let full = "\(self.path)/\(path)"
        let descriptor = open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if descriptor < 0 { throw DataFolder.failure("make \(full)") }
        current = (path, descriptor, bytes, 0, SHA256Digest())
        files.append(BackupManifest.File(path: path, bytes: bytes, sha256: ""))
    }

    package func write(_ bytes: [UInt8]) throws(Status) {
        guard let file = current, bytes.count <= file.left else {
            throw .internalError("More bytes than the file has.")
        }
        if manifest != nil, file.path == BackupManifest.fileName { manifest?.append(contentsOf: bytes) }
        bytes.withUnsafeBytes { file.digest.add($0) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(file.descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw DataFolder.failure("write \(path)/\(file.path)") }
            written += count
        }
        sizeBytes += bytes.count
        current?.left -= bytes.count
        current?.unsynced += bytes.count
        if let unsynced = current?.unsynced, unsynced >= Self.syncBytes {
            if fdatasync(file.descriptor) != 0 { throw DataFolder.failure("write \(path)/\(file.path)") }
            current?.unsynced = 0
        }
    }

    package func end() throws(Status) {
        guard let file = current else { return }
        current = nil
        let isWritten = fsync(file.descriptor) == 0
        let failure = DataFolder.failure("write \(path)/\(file.path)")
        Glibc.close(file.descriptor)
        if !isWritten { throw failure }
        if file.left > 0 { throw .internalError("\(file.path) is shorter than its size.") }
        if file.path == BackupManifest.fileName {
            files.removeLast()
        } else {
            files[files.count - 1].sha256 = file.digest.finish()
        }
    }

    package func finish() throws(Status) {}

    // MARK: The end

    /// Makes all names durable.
    package func synchronize() throws(Status) {
        for folder in folders.sorted().reversed() { try DataFolder.synchronize("\(path)/\(folder)") }
        try DataFolder.synchronize(path)
    }

    /// Gives the folder its name, durably. What has the name already is replaced at one moment, and then removed.
    package func rename(to name: String) throws(Status) {
        if Glibc.rename(path, name) != 0 {
            guard errno == ENOTEMPTY || errno == EEXIST else { throw DataFolder.failure("make \(name)") }
            let former = try exchange(with: name)
            try DataFolder.synchronize(Self.parent(of: name))
            try Self.remove(former)
        }
        try DataFolder.synchronize(Self.parent(of: name))
    }

    /// - Returns: the name that what was there before has now: that of this folder, or another one where names can't be exchanged
    ///   at one moment.
    private func exchange(with name: String) throws(Status) -> String {
        if linux_exchange(path, name) == 0 { return path }
        let former = "\(name).replaced-\(getpid())"
        guard errno == EINVAL || errno == ENOSYS || errno == ENOTSUP, Glibc.rename(name, former) == 0 else {
            throw DataFolder.failure("replace \(name)")
        }
        if Glibc.rename(path, name) == 0 { return former }
        let failure = DataFolder.failure("replace \(name)")
        _ = Glibc.rename(former, name)
        throw failure
    }

    package static func parent(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Removes a folder's manifest.
    package static func removeManifest(of path: String) throws(Status) {
        try DataFolder.remove("\(path)/\(BackupManifest.fileName)")
    }

    /// Removes a folder and all that is in it; links are removed, and not followed. A backup loses its manifest first, so that
    /// nothing that is half removed looks whole.
    package static func remove(_ path: String) throws(Status) {
        if try DataFolder.remove("\(path)/\(BackupManifest.fileName)") { try DataFolder.synchronize(path) }
        try removeTree(path, depth: 0)
    }

    private static func removeTree(_ path: String, depth: Int, triesLeft: Int = 100) throws(Status) {
        if depth > Limits.backupPathComponentsMax { throw .failedPrecondition("\(path) is too deep to be removed.") }
        for name in try DataFolder.names(path) {
            let entry = "\(path)/\(name)"
            var status = stat()
            if lstat(entry, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
                try removeTree(entry, depth: depth + 1)
            } else {
                try DataFolder.remove(entry)
            }
        }
        if rmdir(path) == 0 { return }
        let code = errno
        if code == ENOENT { return }
        // A restore that a signal ends may have made another file meanwhile.
        if code == ENOTEMPTY || code == EEXIST, triesLeft > 0 {
            return try removeTree(path, depth: depth, triesLeft: triesLeft - 1)
        }
        throw DataFolder.failure("remove \(path)", code)
    }
}
