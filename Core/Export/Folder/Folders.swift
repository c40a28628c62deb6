import CLinux
import Glibc
import HearthModel

/// Operations on folders.
package enum Folders {
    /// The path without links, `.` and `..`.
    package static func resolved(_ path: String) throws(Status) -> String {
        guard let resolved = realpath(path, nil) else { throw FileFailure.status("read", path) }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The path of a file or folder that another file names.
    /// - Parameters:
    ///   - folder: what the name is relative to, with a slash at its end.
    ///   - root: where it must be, `resolved`.
    ///   - source: who names it, for errors.
    /// - Returns: the path, and the same without links, `.` and `..`.
    /// - Throws: an error for what isn't there, or isn't below `root`.
    package static func path(
        _ name: String, in folder: String, below root: String, named source: String
    ) throws(Status) -> (path: String, resolved: String) {
        if name.isEmpty || name.utf8.contains(0) {
            throw .invalidArgument("\(source) names a file \"\(name)\", which cannot be.")
        }
        let path = folder + name
        let resolved: String
        do throws(Status) {
            resolved = try Self.resolved(path)
        } catch {
            throw Status(error.code, "\(source) names a file that cannot be read. \(error.message)")
        }
        guard resolved.utf8.starts(with: root.utf8), resolved.utf8.dropFirst(root.utf8.count).first == UInt8(ascii: "/")
        else { throw .invalidArgument("\(source) names a file outside of the export: \(name).") }
        return (path, resolved)
    }

    /// The names in a folder, sorted, without `.` and `..`.
    package static func names(_ path: String) throws(Status) -> [String] {
        guard let folder = opendir(path) else { throw FileFailure.status("read", path) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    package static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Whether there is something that is neither a file nor a folder, such as a device; links are followed.
    package static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG && status.st_mode & S_IFMT != S_IFDIR
    }

    /// Whether a folder is the root of a file system, so that no other folder can take its name. Of a folder that is mounted a second time
    /// in its own file system this is not known.
    package static func isRootOfFileSystem(_ path: String) -> Bool {
        var (own, parent) = (stat(), stat())
        guard stat(path, &own) == 0, stat(path + "/..", &parent) == 0 else { return false }
        return own.st_dev != parent.st_dev || own.st_ino == parent.st_ino
    }

    /// 0 when there is no such file.
    static func sizeBytes(ofFile path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    package static func create(_ path: String) throws(Status) {
        if mkdir(path, 0o755) != 0 { throw FileFailure.status("create", path) }
    }

    /// Makes the folders above a path that do not exist, durably.
    /// - Returns: those that it made, the outermost first.
    package static func createParents(of path: String) throws(Status) -> [String] {
        guard let slash = lastSlash(withoutEnd(path)), slash > path.startIndex else { return [] }
        let parent = withoutEnd(String(path[..<slash]))
        if exists(parent) { return [] }
        var made = try createParents(of: parent)
        do throws(Status) {
            if try createUnlessThere(parent) { made.append(parent) }
            try syncParent(of: parent)
        } catch {
            for folder in made.reversed() { removeEmpty(folder) }
            throw error
        }
        return made
    }

    /// - Returns: whether it made the folder, and not somebody else meanwhile.
    private static func createUnlessThere(_ path: String) throws(Status) -> Bool {
        if mkdir(path, 0o755) == 0 { return true }
        let isTaken = errno == EEXIST
        let failure = FileFailure.status("create", path)
        if isTaken, isFolder(path) { return false }
        throw failure
    }

    package static func removeEmpty(_ path: String) { rmdir(path) }

    /// Makes names in a folder durable.
    package static func sync(_ path: String) throws(Status) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw FileFailure.status("read", path) }
        defer { close(descriptor) }
        if fsync(descriptor) != 0, errno != EINVAL { throw FileFailure.status("write", path) }
    }

    /// Makes the name of a file or folder durable in the folder that it is in.
    package static func syncParent(of path: String) throws(Status) {
        let trimmed = withoutEnd(path)
        try sync(lastSlash(trimmed).map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? ".")
    }

    /// Where the last slash of a path is, as the system sees it: a slash and an accent behind it are one character.
    package static func lastSlash(_ path: String) -> String.Index? { path.utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// What follows the last slash.
    package static func name(_ path: String) -> String {
        lastSlash(path).map { String(path[path.utf8.index(after: $0)...]) } ?? path
    }

    /// Without slashes at the end.
    package static func withoutEnd(_ path: String) -> String {
        var path = Substring(path)
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return String(path)
    }

    /// Gives two folders each other's names, at one moment.
    /// - Returns: false when the file system can't.
    static func exchange(_ path: String, _ other: String) throws(Status) -> Bool {
        if linux_exchange(path, other) == 0 { return true }
        if errno == EINVAL || errno == ENOSYS || errno == ENOTSUP { return false }
        throw FileFailure.status("replace", other)
    }

    package static func move(_ path: String, to target: String) throws(Status) {
        if rename(path, target) != 0 { throw FileFailure.status("write", target) }
    }

    /// Gives a folder that was filled under another name its own, durably.
    /// - Parameters:
    ///   - replaces: a folder that is there is replaced at one moment, and removed then. Otherwise only an empty one may be there.
    ///   - marker: the end of the names of files without which a folder looks like no export: they are removed first.
    package static func finish(
        _ partial: String, as target: String, replaces: Bool, marker: String
    ) throws(Status) {
        guard rename(partial, target) != 0 else { return try syncParent(of: target) }
        guard replaces, errno == ENOTEMPTY || errno == EEXIST else { throw FileFailure.status("write", target) }
        let former = try replace(target, by: partial)
        try syncParent(of: target)
        for name in try names(former) where name.hasSuffix(marker) { unlink(former + "/" + name) }
        try sync(former)
        remove(former)
        try syncParent(of: target)
    }

    /// - Returns: the name that the folder has which was there before.
    private static func replace(_ target: String, by partial: String) throws(Status) -> String {
        if try exchange(partial, target) { return partial }
        // Neither folder has the name for a moment.
        let former = "\(withoutEnd(target)).replaced-\(getpid())"
        try move(target, to: former)
        do throws(Status) {
            try move(partial, to: target)
        } catch {
            try move(former, to: target)
            throw error
        }
        return former
    }

    /// Copies a file, or a folder and all that it holds, durably; a link is made again, and not followed.
    /// - Throws: FAILED_PRECONDITION for what is neither, and for folders that are nested too deeply.
    package static func copy(_ path: String, to target: String, depth: Int = 0) throws(Status) {
        var status = stat()
        if lstat(path, &status) != 0 { throw FileFailure.status("read", path) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: try copyFile(path, to: target)
        case S_IFLNK:
            var link = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &link, link.count - 1)
            if count < 0 || symlink(link, target) != 0 { throw FileFailure.status("copy", path) }
        case S_IFDIR:
            if depth >= copyDepthMax { throw .failedPrecondition("\(path) is nested too deeply to be copied.") }
            try create(target)
            for name in try names(path) { try copy("\(path)/\(name)", to: "\(target)/\(name)", depth: depth + 1) }
            try sync(target)
        default: throw .failedPrecondition("\(path) is no file, and cannot be copied.")
        }
    }

    private static let copyDepthMax = 64

    private static func copyFile(_ path: String, to target: String) throws(Status) {
        let source = try FileSource(path)
        let sink = try FileSink(target)
        var piece = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            let count = try piece.withMutableBytes { buffer throws(Status) in try source.read(into: buffer) }
            if count == 0 { break }
            try sink.write(Array(piece[..<count]))
        }
        try sink.finish()
    }

    /// Removes a file, or a folder and all that it holds, but follows no links. What cannot be removed stays.
    package static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            unlink(path)
            return
        }
        do throws(Status) {
            for name in try names(path) { remove(path + "/" + name) }
        } catch {
            // A folder that cannot be listed stays.
        }
        rmdir(path)
    }
}
