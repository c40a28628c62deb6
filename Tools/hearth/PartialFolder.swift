import HearthBackup
import HearthConcurrency
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
    }

    private let state = Mutex(State())

    /// - Parameter path: must not exist.
    init(_ path: String) throws(ToolFailure) {
        watch()
        let failure = state.withLock { state -> Status? in
            do throws(Status) {
                state.folder = try BackupFolder(path)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw ToolFailure(.data, failure.message) }
    }

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
    /// - Returns: the path without slashes at its end.
    static func target(_ path: String, replacing: String? = nil, hint: String) throws(ToolFailure) -> String {
        var path = path[...]
        while path.count > 1, path.last == "/" { path = path.dropLast() }
        let name = String(path)
        if name.isEmpty { throw .usage("Expected the name of a folder.") }
        var status = stat()
        guard stat(name, &status) == 0 else { return name }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .usage("\(name) is no folder.") }
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
