import COpenSSL
import HearthBundle
import HearthModel
import HearthNetwork
import HearthStorage
import Synchronization

/// Makes bundles when they are asked for, and keeps them ready.
///
/// A bundle that was made is served again within its maximum age whatever happens, and after that as long as nothing in
/// its database has changed. Requests for one that is being made wait for it together.
final class BundleKeeper: Sendable {
    /// A bundle, ready to be sent.
    struct Made: Sendable {
        let plain: SpillFile
        let compressed: SpillFile
        /// The digest of the content.
        let digest: String
        let metadata: BundleMetadata
        /// The state that it shows.
        fileprivate let version: Int64
        fileprivate let incarnation: Int64
        fileprivate let madeNanoseconds: UInt64
    }

    /// A bundle for one request.
    struct Answer: Sendable {
        var made: Made
        /// Seconds since it was last known to be up to date.
        var ageSeconds: Int
    }

    typealias Completion = @Sendable (Result<Answer, Status>) -> Void

    private struct Entry {
        var made: Made?
        /// When the bundle was last known to be up to date.
        var currentNanoseconds: UInt64 = 0
        var usedNanoseconds: UInt64 = 0
        var isBeingMade = false
        var waiting: [Completion] = []
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let pool = WorkerGroup(name: "hearth-bundle", threadsMax: Limits.bundlesBuildingMax)
    /// Threads that read what is too large for memory.
    let readers = WorkerGroup(name: "hearth-file", threadsMax: 2)
    private let clock: any Clock
    private let folder: String
    private let requireIndexes: Bool

    /// - Parameter folder: for bundles that are too large for memory.
    init(folder: String, requireIndexes: Bool, clock: any Clock = SystemClock()) {
        self.folder = folder
        self.requireIndexes = requireIndexes
        self.clock = clock
    }

    func stop() {
        pool.stop()
        readers.stop()
    }

    /// - Parameter done: called at once and on this thread, or later and from another.
    func bundle(_ definition: BundleDefinition, _ database: Database, _ done: @escaping Completion) {
        // Nobody must get what a definition says that came after he was let in: so another text is another bundle.
        let key = "\(database.name.text)/\(definition.id)/\(String(decoding: definition.text, as: UTF8.self))"
        let version: Int64
        do throws(Status) { version = try database.view().version } catch { return done(.failure(error)) }
        let incarnation = database.incarnation
        let now = clock.monotonicNanoseconds()
        enum Action {
            case answer(Result<Answer, Status>)
            case make
            case wait
        }
        let action = entries.withLock { entries -> Action in
            var entry = entries[key] ?? Entry()
            entry.usedNanoseconds = now
            if let made = entry.made {
                let isCurrent = made.version == version && made.incarnation == incarnation
                let seconds = Int((now - made.madeNanoseconds) / 1_000_000_000)
                if isCurrent { entry.currentNanoseconds = now }
                if seconds < definition.maxAgeSeconds || isCurrent && seconds < Limits.bundleKeptSecondsMax {
                    entries[key] = entry
                    let age = Int((now - entry.currentNanoseconds) / 1_000_000_000)
                    return .answer(.success(Answer(made: made, ageSeconds: age)))
                }
            }
            if entry.isBeingMade {
                entry.waiting.append(done)
                entries[key] = entry
                return .wait
            }
            if entries.values.count(where: \.isBeingMade) >= Limits.bundlesBuildingMax {
                return .answer(.failure(.unavailable("The server makes too many bundles at once.")))
            }
            entry.isBeingMade = true
            entry.waiting = [done]
            entries[key] = entry
            Self.dropLeastUsed(&entries)
            return .make
        }
        switch action {
        case .answer(let result): done(result)
        case .wait: break
        case .make:
            pool.run(for: .server, refused: { [self] in finish(key, .failure($0)) }) { [self] in
                finish(key, make(definition, database))
            }
        }
    }

    private static func dropLeastUsed(_ entries: inout [String: Entry]) {
        guard entries.count > Limits.bundlesKeptMax else { return }
        let idle = entries.filter { !$0.value.isBeingMade }
        if let oldest = idle.min(by: { $0.value.usedNanoseconds < $1.value.usedNanoseconds }) {
            entries[oldest.key] = nil
        }
    }

    private func finish(_ key: String, _ result: Result<Made, Status>) {
        let waiting = entries.withLock { entries -> [Completion] in
            guard var entry = entries[key] else { return [] }
            let waiting = entry.waiting
            entry.waiting = []
            entry.isBeingMade = false
            if case .success(let made) = result {
                entry.made = made
                entry.currentNanoseconds = made.madeNanoseconds
                entries[key] = entry
            } else {
                entries[key] = nil
            }
            return waiting
        }
        for done in waiting { done(result.map { Answer(made: $0, ageSeconds: 0) }) }
    }

    // MARK: Making

    private func make(_ definition: BundleDefinition, _ database: Database) -> Result<Made, Status> {
        do throws(Status) {
            let started = clock.monotonicNanoseconds()
            let deadline = started + UInt64(Limits.bundleBuildSecondsMax) * 1_000_000_000
            let view = try database.view()
            var builder = try BundleBuilder(id: definition.id, spool: BundleFileSpool(folder: folder))
            try BundleMaking.collect(definition, from: view, into: &builder, requireIndexes: requireIndexes) {
                [clock] () throws(Status) in
                if clock.monotonicNanoseconds() > deadline {
                    throw Status(.deadlineExceeded, "The bundle took longer than the server makes bundles for.")
                }
            }
            let plain = SpillFile(folder: folder)
            let compressed = SpillFile(folder: folder)
            let gzip = try GzipStream()
            let digest = ContentDigest()
            let summary = try builder.write { piece throws(Status) in
                digest.add(piece)
                try plain.append(piece)
                try compressed.append(try gzip.compress(piece))
            }
            try compressed.append(try gzip.compress([], isLast: true))
            return .success(
                Made(
                    plain: plain, compressed: compressed, digest: digest.text, metadata: summary.metadata,
                    version: view.version, incarnation: database.incarnation, madeNanoseconds: started))
        } catch {
            return .failure(error)
        }
    }
}

/// SHA-256 of what comes in pieces.
private final class ContentDigest {
    private let context = EVP_MD_CTX_new()

    init() { EVP_DigestInit_ex(context, EVP_sha256(), nil) }

    deinit { EVP_MD_CTX_free(context) }

    func add(_ piece: [UInt8]) { EVP_DigestUpdate(context, piece, piece.count) }

    /// The first half of it, in hexadecimal digits: enough to tell contents apart. Ends the digest.
    var text: String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: digest.prefix(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
