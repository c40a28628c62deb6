import COpenSSL
import HearthHost
import HearthConcurrency
import HearthBundle
import HearthModel
import HearthNetwork
import HearthDocuments
import Synchronization

/// Builds bundles on request, and caches them.
///
/// A cached bundle is served again until it reaches its maximum age, and after that as long as nothing in its database
/// has changed. Concurrent requests for a bundle that is being built wait for it together.
package final class BundleCache: Sendable {
    /// A built bundle.
    struct Made: Sendable {
        let plain: SpillFile
        let compressed: SpillFile
        /// The digest of the content.
        let digest: String
        let metadata: BundleMetadata
        /// The version that it shows.
        fileprivate let version: Int64
        fileprivate let incarnation: Int64
        fileprivate let madeNanoseconds: UInt64
    }

    /// The bundle for one request.
    package struct Answer: Sendable {
        var made: Made
        /// Seconds since it was last known to be up to date.
        var ageSeconds: Int
    }

    package typealias Completion = @Sendable (Result<Answer, Status>) -> Void

    /// A request that waits for a bundle.
    private struct Waiter {
        let requester: Requester
        /// The oldest version that it may show.
        let version: Int64
        let done: Completion
    }

    private struct Entry {
        var made: Made?
        /// The time at which the bundle was last known to be up to date.
        var currentNanoseconds: UInt64 = 0
        var usedNanoseconds: UInt64 = 0
        var isBeingMade = false
        var waiting: [Waiter] = []
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let pool = WorkerGroup(
        name: "hearth-bundle", threadsMax: Limits.bundlesBuildingMax, parkedMax: Limits.bundlesParkedMax)
    /// Threads that read bundles that are too large for memory.
    let readers = WorkerGroup(name: "hearth-file", threadsMax: 2)
    private let clock: any Clock
    private let folder: String
    private let requireIndexes: Bool

    /// - Parameter folder: for bundles that are too large for memory.
    package init(folder: String, requireIndexes: Bool, clock: any Clock = SystemClock()) {
        self.folder = folder
        self.requireIndexes = requireIndexes
        self.clock = clock
    }

    package func stop() {
        pool.stop()
        readers.stop()
    }

    /// - Parameters:
    ///   - requester: the account that the build is counted for.
    ///   - done: called immediately and on this thread, or later and from another. Fails with RESOURCE_EXHAUSTED when
    ///     too many of the requester's bundles wait.
    func bundle(
        _ definition: BundleDefinition, _ database: Database, for requester: Requester, _ done: @escaping Completion
    ) {
        // A requester must not get the contents of a definition that was saved after their authorization: so another
        // string is another bundle.
        let key = "\(database.name.string)/\(definition.id)/\(String(decoding: definition.string, as: UTF8.self))"
        let version: Int64
        do throws(Status) { version = try database.view().version } catch { return done(.failure(error)) }
        let incarnation = database.incarnation
        let now = clock.monotonicNanoseconds()
        let answer = entries.withLock { entries -> Answer? in
            var entry = entries[key] ?? Entry()
            defer { entries[key] = entry }
            entry.usedNanoseconds = now
            if let made = entry.made {
                let isCurrent = made.version == version && made.incarnation == incarnation
                let seconds = Int((now - made.madeNanoseconds) / 1_000_000_000)
                if isCurrent { entry.currentNanoseconds = now }
                if seconds < definition.maxAgeSeconds || isCurrent && seconds < Limits.bundleCacheSecondsMax {
                    let age = Int((now - entry.currentNanoseconds) / 1_000_000_000)
                    return Answer(made: made, ageSeconds: age)
                }
            }
            entry.waiting.append(Waiter(requester: requester, version: version, done: done))
            return nil
        }
        if let answer { return done(.success(answer)) }
        queue(key, definition, database, for: requester)
    }

    /// Queues one build for each waiting request, on its own account; the first one that starts builds the bundle.
    private func queue(
        _ key: String, _ definition: BundleDefinition, _ database: Database, for requester: Requester
    ) {
        pool.runInSlices(for: requester, refused: { [self] in refuse(key, requester, $0) }) { [self] slice in
            let isMine = entries.withLock { entries in
                guard var entry = entries[key], !entry.waiting.isEmpty, !entry.isBeingMade else { return false }
                entry.isBeingMade = true
                entries[key] = entry
                Self.dropLeastUsed(&entries)
                return true
            }
            if !isMine { return }
            let rest = finish(key, definition, make(definition, database, slice))
            if let rest { queue(key, definition, database, for: rest) }
        }
    }

    private static func dropLeastUsed(_ entries: inout [String: Entry]) {
        guard entries.count > Limits.bundlesCachedMax else { return }
        let idle = entries.filter { !$0.value.isBeingMade && $0.value.waiting.isEmpty }
        if let oldest = idle.min(by: { $0.value.usedNanoseconds < $1.value.usedNanoseconds }) {
            entries[oldest.key] = nil
        }
    }

    /// A job of a requester was rejected: one of the requests that wait on the same account fails.
    private func refuse(_ key: String, _ requester: Requester, _ status: Status) {
        let waiter = entries.withLock { entries -> Waiter? in
            guard var entry = entries[key],
                let index = entry.waiting.lastIndex(where: { $0.requester == requester })
            else { return nil }
            let waiter = entry.waiting.remove(at: index)
            entries[key] = entry.made == nil && entry.waiting.isEmpty && !entry.isBeingMade ? nil : entry
            return waiter
        }
        waiter?.done(.failure(status))
    }

    /// Responds to the requests that the result satisfies.
    /// - Returns: the account of one of the later requests, which need a newer version.
    private func finish(_ key: String, _ definition: BundleDefinition, _ result: Result<Made, Status>) -> Requester? {
        var rest: Requester?
        let answered = entries.withLock { entries -> [Waiter] in
            guard var entry = entries[key] else { return [] }
            entry.isBeingMade = false
            var answered = entry.waiting
            if case .success(let made) = result {
                entry.made = made
                entry.currentNanoseconds = made.madeNanoseconds
                if definition.maxAgeSeconds == 0 {
                    answered = entry.waiting.filter { $0.version <= made.version }
                    entry.waiting.removeAll { $0.version <= made.version }
                    rest = entry.waiting.first?.requester
                } else {
                    entry.waiting = []
                }
                entries[key] = entry
            } else {
                entries[key] = nil
            }
            return answered
        }
        for waiter in answered { waiter.done(result.map { Answer(made: $0, ageSeconds: 0) }) }
        return rest
    }

    // MARK: Making

    private func make(
        _ definition: BundleDefinition, _ database: Database, _ slice: WorkerSlice
    ) -> Result<Made, Status> {
        do throws(Status) {
            let started = clock.monotonicNanoseconds()
            let deadline = started + UInt64(Limits.bundleBuildSecondsMax) * 1_000_000_000
            let view = try database.view()
            var builder = try BundleBuilder(id: definition.id, spool: BundleFileSpool(folder: folder))
            try BundleBuilding.collect(definition, from: view, into: &builder, requireIndexes: requireIndexes) {
                [clock] () throws(Status) in
                if clock.monotonicNanoseconds() > deadline {
                    throw Status(
                        .deadlineExceeded,
                        "The bundle took longer than \(Limits.bundleBuildSecondsMax) seconds to build.")
                }
                slice.giveWay()
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
                    plain: plain, compressed: compressed, digest: digest.string, metadata: summary.metadata,
                    version: view.version, incarnation: database.incarnation, madeNanoseconds: started))
        } catch {
            return .failure(error)
        }
    }
}

/// SHA-256 of data that arrives in pieces.
private final class ContentDigest {
    private let context = EVP_MD_CTX_new()

    init() { EVP_DigestInit_ex(context, EVP_sha256(), nil) }

    deinit { EVP_MD_CTX_free(context) }

    func add(_ piece: [UInt8]) { EVP_DigestUpdate(context, piece, piece.count) }

    /// The first half of the digest, in hexadecimal digits: enough to distinguish contents. Ends the digest.
    var string: String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: digest.prefix(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
