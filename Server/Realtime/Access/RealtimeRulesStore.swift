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
    private let memory = Memory()

    private final class Memory: Sendable {
        let rules = Mutex<[String: Stored]>([:])
    }

    init(folder: String?) {
        self.folder = folder
    }

    private static let mark = "hearth-rules 1 "

    private func path(_ name: String) -> String? {
        folder.map { "\($0)/\(DatabaseFileName.component(name)).rules" }
    }

    /// - Throws: FAILED_PRECONDITION when the file cannot be read.
    func load(_ name: String) throws(Status) -> Stored? {
        guard let path = path(name) else { return memory.rules.withLock { $0[name] } }
        guard let bytes = try TextFile.read(path) else { return nil }
        guard bytes.starts(with: Self.mark.utf8), let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else {
            throw .failedPrecondition("\(path) contains no rules.")
        }
        let base = String(decoding: bytes[Self.mark.utf8.count..<end], as: UTF8.self)
        return Stored(base: base, string: Array(bytes[(end + 1)...]))
    }

    /// Durable and atomic.
    /// - Throws: UNAVAILABLE when the file cannot be written.
    func save(_ string: [UInt8], base: String, _ name: String) throws(Status) {
        guard let folder, let path = path(name) else {
            return memory.rules.withLock { $0[name] = Stored(base: base, string: string) }
        }
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if descriptor < 0 { throw DataFolder.failure("write \(draft)") }
        var rest = (Array("\(Self.mark)\(base)\n".utf8) + string)[...]
        var isWritten = true
        while !rest.isEmpty, isWritten {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            isWritten = count > 0
            if isWritten { rest = rest.dropFirst(count) }
        }
        isWritten = isWritten && fsync(descriptor) == 0
        let failure = DataFolder.failure("write \(draft)")
        close(descriptor)
        if !isWritten { throw failure }
        if rename(draft, path) != 0 { throw DataFolder.failure("write \(path)") }
        try DataFolder.synchronize(folder)
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
