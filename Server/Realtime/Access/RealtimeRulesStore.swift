import HearthSQLite
import COpenSSL
import HearthHost
import Glibc
import HearthModel
import Synchronization

/// Stores the rules that were set over HTTP, so that a restart doesn't lose them: one file per namespace beside the
/// data.
///
/// Format of a file: a line `hearth-rules 1 BASE`, then the rules as they were sent. BASE is the digest of the rules
/// file that was in force when they were set, or `-` without one. When that file has changed since, the file is newer
/// and is used.
struct RealtimeRulesStore: Sendable {
    struct Stored: Equatable {
        var base: String
        var string: [UInt8]
    }

    /// Nil stores them in memory, as long as the server runs.
    let folder: String?
    private let log: Log
    private let memory = Memory()

    private final class Memory: Sendable {
        let rules = Mutex<[String: Stored]>([:])
        /// Namespaces whose files failed, of which each is logged once.
        let failing = Mutex<Set<String>>([])
    }

    init(folder: String?, log: Log = Log()) {
        self.folder = folder
        self.log = log
    }

    private static let mark = "hearth-rules 1 "

    private func path(_ name: String) -> String? {
        folder.map { "\($0)/\(DatabaseFileName.component(name)).rules" }
    }

    /// - Throws: INTERNAL when the file cannot be read, or has other contents.
    func load(_ name: String) throws(Status) -> Stored? {
        guard let path = path(name) else { return memory.rules.withLock { $0[name] } }
        let stored = try logging(name, .internal, "The stored rules of \(name) can't be read.") { () throws(Status) in
            try Self.read(path)
        }
        memory.failing.withLock { _ = $0.remove(name) }
        return stored
    }

    /// Logs the reason, once for each namespace, and throws a status without it: clients need not know the path.
    private func logging<Result>(
        _ name: String, _ code: Status.Code, _ message: String, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result {
        do throws(Status) { return try body() } catch {
            let isNews = memory.failing.withLock { failing in
                // They are logged again.
                if failing.count >= Limits.unopenedStoresMax { failing = [] }
                return failing.insert(name).inserted
            }
            if isNews {
                log.error(
                    "the stored rules of a namespace fail", ("namespace", .string(name)),
                    ("reason", .string(error.message)))
            }
            throw Status(code, message)
        }
    }

    private static func read(_ path: String) throws(Status) -> Stored? {
        guard let bytes = try TextFile.read(path) else { return nil }
        guard bytes.starts(with: mark.utf8), let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else {
            throw .internalError("\(path) contains no rules.")
        }
        let base = String(decoding: bytes[mark.utf8.count..<end], as: UTF8.self)
        return Stored(base: base, string: Array(bytes[(end + 1)...]))
    }

    /// Durable and atomic.
    /// - Throws: UNAVAILABLE when the file cannot be written.
    func save(_ string: [UInt8], base: String, _ name: String) throws(Status) {
        guard folder != nil, let path = path(name) else {
            return memory.rules.withLock { $0[name] = Stored(base: base, string: string) }
        }
        try logging(name, .unavailable, "The rules of \(name) can't be stored.") { () throws(Status) in
            try DataFolder.write(Array("\(Self.mark)\(base)\n".utf8) + string, path)
        }
        memory.failing.withLock { _ = $0.remove(name) }
    }

    /// Of a rules file; `-` without one.
    static func digest(_ string: [UInt8]?) -> String {
        guard let string else { return "-" }
        var digest = [UInt8](repeating: 0, count: 32)
        _ = EVP_Digest(string, string.count, &digest, nil, EVP_sha256(), nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
