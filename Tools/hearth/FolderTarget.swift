import HearthBackup
import HearthExport
import HearthModel
import HearthToolSupport

/// The folder that a command makes: a folder that is filled beside it takes its name at the end. What would fail then is found
/// before the work.
enum FolderTarget {
    /// - Parameter path: need not exist.
    /// - Returns: the path without slashes at its end; of what exists, without links: the folder that a link names is replaced.
    /// - Throws: 64 for what is no folder, and for folders that can't be replaced.
    static func path(_ path: String) throws(ToolFailure) -> String {
        let name = Folders.withoutEnd(path)
        guard Folders.exists(name) else { return name }
        guard Folders.isFolder(name) else { throw .usage("\(name) is no folder.") }
        let resolved = try FileErrors.of { () throws(Status) in try Folders.resolved(name) }
        try check(resolved, named: name)
        if BackupSchedule.isInside(".", resolved) {
            throw .usage("This command was started in \(name), which would be replaced: name another folder.")
        }
        return resolved
    }

    /// - Throws: 64 for a folder whose name no other one can take.
    static func check(_ path: String, named name: String) throws(ToolFailure) {
        if Folders.isRootOfFileSystem(path) {
            throw .usage("\(name) is the root of a file system, which can't be replaced: name a folder inside of it.")
        }
    }
}
