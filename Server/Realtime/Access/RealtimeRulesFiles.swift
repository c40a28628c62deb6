import HearthHost
import Glibc
import HearthModel
import HearthRules
import Synchronization

/// Rules of the Realtime Database in files that are read again when they change. If a file has an error, the former
/// rules remain in force.
package final class RealtimeRulesFiles: Sendable {
    /// The paths of the files.
    package struct Paths: Sendable, Equatable {
        /// For every namespace without a file of its own.
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
        /// The files that have changed at the last check.
        var changed: Set<String> = []
    }

    private let paths: Paths
    private let log: Log
    private let state = Mutex(State())

    /// Reads all files, before the server accepts requests.
    /// - Throws: INVALID_ARGUMENT with the error in a file, FAILED_PRECONDITION for a missing file.
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

    /// Checks the files for changes.
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
                    "the rules are broken; the former rules remain in force", ("file", .string(path)),
                    ("reason", .string(error.message)))
            }
        }
        state.withLock { $0.changed = changed }
        return !changed.isEmpty
    }

    private static func compile(_ path: String) throws(Status) -> TreeRuleset {
        guard let string = try TextFile.read(path) else {
            throw .failedPrecondition("The rules file \(path) does not exist.")
        }
        do throws(TreeRulesError) {
            return try TreeRuleset.compile(string)
        } catch {
            throw .invalidArgument("\(path):\(error)")
        }
    }
}
