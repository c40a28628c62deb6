import HearthHost
import HearthModel
import HearthRules
import Synchronization

/// Security rules in files, read again when they change. After an error in a file the previous rules stay in force.
package final class RulesFiles: Sendable {
    private let paths: [String: String]
    private let library: RulesLibrary
    private let log: Log
    private let stamps = Mutex<[String: FileStamp]>([:])

    /// - Parameter paths: by database id.
    package init(_ paths: [String: String], _ library: RulesLibrary, log: Log) {
        self.paths = paths
        self.library = library
        self.log = log
    }

    /// Reads all files, before the server accepts requests.
    /// - Throws: INVALID_ARGUMENT with the errors of the files, FAILED_PRECONDITION for a missing file.
    package func load() throws(Status) {
        for (database, path) in paths.sorted(by: { $0.key < $1.key }) {
            stamps.withLock { $0[path] = FileStamp(path) }
            library.setFile(try compile(path), name: Self.name(path), database: database)
        }
    }

    /// The name of a file in the ruleset that is made of it: relative to the folder of `firebase.json`, as Firebase's tools name
    /// it, and without the server's folders.
    private static func name(_ path: String) -> String {
        guard path.hasPrefix("/") else { return path }
        return path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// Checks for changes. To be called regularly.
    package func poll() {
        for (database, path) in paths {
            let stamp = FileStamp(path)
            let isNew = stamps.withLock { stamps in
                if stamps[path] == stamp { return false }
                stamps[path] = stamp
                return true
            }
            guard isNew else { continue }
            do throws(Status) {
                library.setFile(try compile(path), name: Self.name(path), database: database)
                log.info("rules reloaded", ("file", .string(path)), ("database", .string(database)))
            } catch {
                log.error(
                    "the rules are broken; the previous ones stay in force", ("file", .string(path)),
                    ("reason", .string(error.message)))
            }
        }
    }

    private func compile(_ path: String) throws(Status) -> Ruleset {
        guard let bytes = try TextFile.read(path) else {
            throw .failedPrecondition("The rules file \(path) is not there.")
        }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw .invalidArgument("\(path) is not valid UTF-8.")
        }
        let compilation = Ruleset.compile(string)
        for issue in compilation.issues where issue.severity == .warning {
            log.warning("\(path):\(issue.line):\(issue.column): \(issue.description)")
        }
        guard let ruleset = compilation.ruleset else {
            let errors = compilation.issues.filter { $0.severity == .error }
            throw .invalidArgument(
                errors.map { "\(path):\($0.line):\($0.column): \($0.description)" }.joined(separator: "\n"))
        }
        return ruleset
    }
}
