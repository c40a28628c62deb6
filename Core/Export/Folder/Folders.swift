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

    static func create(_ path: String) throws(Status) {
        if mkdir(path, 0o755) != 0 { throw FileFailure.status("create", path) }
    }

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
        try sync(trimmed.lastIndex(of: "/").map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? ".")
    }

    /// Without slashes at the end.
    package static func withoutEnd(_ path: String) -> String {
        var path = Substring(path)
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
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
