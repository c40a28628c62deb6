import Glibc
import HearthModel

/// A lock on a folder that somebody fills, as long as this object lives. Those that a crash leaves have none.
package final class FolderLock {
    private let descriptor: Int32

    /// - Returns: nil when somebody has the lock, or there is no such folder.
    package init?(_ path: String) {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if folder < 0 { return nil }
        if flock(folder, LOCK_EX | LOCK_NB) != 0 {
            close(folder)
            return nil
        }
        descriptor = folder
    }

    /// Makes a folder that is filled under another name, with a lock on it. One that a crash has left is removed.
    /// - Parameter target: the final path, for errors.
    /// - Throws: ALREADY_EXISTS when another writer fills the same folder; why it cannot be made.
    package static func create(_ partial: String, for target: String) throws(Status) -> FolderLock {
        if Folders.exists(partial) {
            guard let former = FolderLock(partial) else {
                throw Status(.alreadyExists, "An export to \(target) is under way.")
            }
            withExtendedLifetime(former) { Folders.remove(partial) }
        }
        try Folders.create(partial)
        guard let lock = FolderLock(partial) else { throw FileFailure.status("lock", partial) }
        return lock
    }

    deinit { close(descriptor) }
}

extension Folders {
    /// What the names of unfinished exports of a server begin with.
    package static let partialPrefix = ".partial-"

    private static let depthMax = 16

    /// Removes unfinished exports that nobody fills any more, from a folder and those below it. Does not follow links, and
    /// does not look into exports.
    /// - Returns: the paths of those that were removed.
    package static func removeAbandoned(in path: String, depth: Int = 0) -> [String] {
        var removed: [String] = []
        do throws(Status) {
            let names = try names(path)
            if names.contains(where: { $0.hasSuffix(ExportFolderWriter.overallSuffix) }) { return [] }
            for name in names {
                let child = path + "/" + name
                var status = stat()
                guard lstat(child, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { continue }
                if !name.hasPrefix(partialPrefix) {
                    if depth < depthMax { removed += removeAbandoned(in: child, depth: depth + 1) }
                } else if let lock = FolderLock(child) {
                    withExtendedLifetime(lock) { remove(child) }
                    removed.append(child)
                }
            }
        } catch {
            // A folder that cannot be listed has nothing of ours.
        }
        return removed
    }
}
