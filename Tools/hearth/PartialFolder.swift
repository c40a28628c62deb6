import HearthBackup
import HearthConcurrency
import HearthExport
import HearthModel
import HearthToolSupport
import Synchronization

import Glibc

/// The folder that a command fills under another name until it is whole, and that doesn't survive the command: it is removed
/// after an error, and on SIGINT and SIGTERM, which end the process then with 130 and 143.
final class PartialFolder: BackupTarget, Sendable {
    private struct State: @unchecked Sendable {
        /// Belongs to whoever has the lock.
        var folder: BackupFolder?
        /// Keeps processes of other containers, which have the same number, from removing the folder.
        var lock: FolderLock?
    }

    private let state = Mutex(State())

    /// - Parameter path: a name that says that what has it is unfinished. A folder that a process with the same number has left
    ///   there is removed.
    /// - Throws: 73 when another process fills it, or it can't be made.
    init(_ path: String) throws(ToolFailure) {
        watch()
        let failure = state.withLock { state -> Status? in
            do throws(Status) {
                try Self.removeAbandoned(path)
                let folder = try BackupFolder(path)
                guard let lock = FolderLock(path) else { throw Self.isTaken(path) }
                (state.folder, state.lock) = (folder, lock)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw ToolFailure(.data, failure.message) }
    }

    /// Removes what a process that was killed has left: in containers processes have the same number.
    private static func removeAbandoned(_ path: String) throws(Status) {
        guard Folders.exists(path) else { return }
        guard let lock = FolderLock(path) else { throw isTaken(path) }
        try withExtendedLifetime(lock) { () throws(Status) in try BackupFolder.remove(path) }
    }

    private static func isTaken(_ path: String) -> Status { .failedPrecondition("Another process fills \(path).") }

    /// The signals are for one thread, which has the lock when it ends the process: no file is made after the removal.
    private func watch() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let watched = signals
        let thread = NamedThread.start("hearth-signals") { [self] in
            var signals = watched
            var signal: Int32 = 0
            while sigwait(&signals, &signal) != 0 {}
            state.withLock { state in
                Self.remove(&state)
                _exit(128 + signal)
            }
        }
        thread?.detach()
    }

    /// Calls `body` with the folder.
    /// - Throws: UNAVAILABLE when it was removed or has its name already.
    func withFolder<Value: Sendable>(_ body: (BackupFolder) throws(Status) -> Value) throws(Status) -> Value {
        let result = state.withLock { state -> Result<Value, Status> in
            guard let folder = state.folder else { return .failure(.unavailable("The folder is gone.")) }
            return Result { () throws(Status) in try body(folder) }
        }
        return try result.get()
    }

    func begin(_ path: String, bytes: Int) throws(Status) {
        try withFolder { folder throws(Status) in try folder.begin(path, bytes: bytes) }
    }

    func write(_ bytes: [UInt8]) throws(Status) {
        try withFolder { folder throws(Status) in try folder.write(bytes) }
    }

    func end() throws(Status) { try withFolder { folder throws(Status) in try folder.end() } }

    func finish() throws(Status) {}

    /// Gives the folder its name; what was there before is removed.
    func rename(to name: String) throws(Status) {
        try withFolder { folder throws(Status) in try folder.rename(to: name) }
        state.withLock { $0.folder = nil }
    }

    /// Removes the folder, unless it has its name.
    func remove() {
        state.withLock { Self.remove(&$0) }
    }

    private static func remove(_ state: inout State) {
        guard let folder = state.folder else { return }
        state.folder = nil
        do throws(Status) {
            try BackupFolder.remove(folder.path)
        } catch {
            // What can't be removed has a name that says what it is.
        }
    }

    // MARK: Names

    /// Where a folder may be made: it must not exist, or be empty.
    /// - Parameter replacing: a folder that has this file is replaced, and no other one, which may hold anything.
    /// - Returns: as of `FolderTarget.path`.
    static func target(_ path: String, replacing: String? = nil, hint: String) throws(ToolFailure) -> String {
        if path.isEmpty { throw .usage("Expected the name of a folder.") }
        let name = try FolderTarget.path(path)
        guard Folders.exists(name) else { return name }
        let files = try names(name)
        if files.isEmpty || replacing.map(files.contains) == true { return name }
        guard let replacing else { throw .usage("The folder \(name) is not empty.\(hint)") }
        throw .usage("The folder \(name) has no \(replacing), so that it is nothing that may be replaced.")
    }

    static func names(_ folder: String) throws(ToolFailure) -> [String] {
        guard let stream = opendir(folder) else { throw FileOutput.failure("read", folder) }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
