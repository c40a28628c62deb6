import HearthHost
import Glibc
import HearthModel
import HearthRules
import Synchronization

/// Rules of the Realtime Database that lie in files, read again when they change. A file that is broken leaves the rules
/// before it in force.
package final class RealtimeRulesFiles: Sendable {
    /// Where the files are.
    package struct Paths: Sendable, Equatable {
        /// For every namespace that has none of its own.
        var common: String?
        var byName: [String: String] = [:]

        package init(common: String? = nil, byName: [String: String] = [:]) {
            self.common = common
            self.byName = byName
        }

        var isEmpty: Bool { common == nil && byName.isEmpty }
    }

    private struct State {
        var rulesets: [String: TreeRuleset] = [:]
        var stamps: [String: FileStamp?] = [:]
        /// Files that the last look has found changed.
        var changed: Set<String> = []
    }

    private let paths: Paths
    private let log: Log
    private let state = Mutex(State())

    /// Reads all files, before the server takes requests.
    /// - Throws: INVALID_ARGUMENT with what is wrong in them, FAILED_PRECONDITION for one that isn't there.
    init(_ paths: Paths, log: Log) throws(Status) {
        self.paths = paths
        self.log = log
        for path in files {
            let stamp = FileStamp(path)
            let ruleset = try Self.compile(path)
            state.withLock { state in
                state.stamps[path] = stamp
                state.rulesets[path] = ruleset
            }
        }
    }

    private var files: Set<String> { Set(paths.byName.values).union(paths.common.map { [$0] } ?? []) }

    private func path(for name: String) -> String? { paths.byName[name] ?? paths.common }

    func ruleset(of name: String) -> TreeRuleset? {
        guard let path = path(for: name) else { return nil }
        return state.withLock { $0.rulesets[path] }
    }

    /// Whether the last `poll` has found other rules for a namespace.
    func hasChanged(for name: String) -> Bool {
        guard let path = path(for: name) else { return false }
        return state.withLock { $0.changed.contains(path) }
    }

    /// Looks for changes.
    /// - Returns: whether there were any.
    func poll() -> Bool {
        var changed: Set<String> = []
        for path in files {
            let stamp = FileStamp(path)
            let isNew = state.withLock { state in
                if state.stamps[path] == stamp { return false }
                state.stamps[path] = stamp
                return true
            }
            guard isNew else { continue }
            do throws(Status) {
                let ruleset = try Self.compile(path)
                state.withLock { $0.rulesets[path] = ruleset }
                changed.insert(path)
                log.info("rules of the Realtime Database reloaded", ("file", .string(path)))
            } catch {
                log.error(
                    "the rules are broken; those before them stay in force", ("file", .string(path)),
                    ("reason", .string(error.message)))
            }
        }
        state.withLock { $0.changed = changed }
        return !changed.isEmpty
    }

    private static func compile(_ path: String) throws(Status) -> TreeRuleset {
        guard let string = try TextFile.read(path) else {
            throw .failedPrecondition("The rules file \(path) is not there.")
        }
        do throws(TreeRulesError) {
            return try TreeRuleset.compile(string)
        } catch {
            throw .invalidArgument("\(path):\(error)")
        }
    }
}

/// What of a file tells that it has changed.
struct FileStamp: Equatable, Sendable {
    private var node: UInt
    private var size: Int
    private var seconds: Int
    private var nanoseconds: Int

    /// Nil when there is no such file.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        node = UInt(status.st_ino)
        size = Int(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}
