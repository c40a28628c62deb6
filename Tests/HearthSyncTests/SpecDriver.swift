import Dispatch
import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthSync

/// The cache of a spec test.
enum SpecCache: String, CaseIterable, Sendable {
    case memory
    case durable
}

/// One client that runs step by step, and its callbacks.
final class SpecDriver {
    enum Event {
        case snapshot(ViewSnapshot)
        case failure(ClientQuery, Status)

        var query: ClientQuery {
            switch self {
            case .snapshot(let snapshot): snapshot.query
            case .failure(let query, _): query
            }
        }
    }

    static let database = DatabaseName(project: "test-project")

    private(set) var core: SyncCore
    private(set) var backend: SpecBackend
    private(set) var credentials: SpecCredentials
    private let cache: SpecCache
    private let isEager: Bool
    private let limboResolutionsMax: Int
    private let tokens: TokenSource
    private let folder = TemporaryFolder()
    private var listeners: [ClientQuery: QueryListener] = [:]
    private var inSyncListeners: [InSyncListener] = []

    var events: [Event] = []
    var acknowledged: [String] = []
    var rejected: [String] = []
    var inSyncCount = 0
    var pendingWritesCount = 0

    private final class InSyncListener {}

    init(
        cache: SpecCache, isEager: Bool, limboResolutionsMax: Int,
        tokens: @escaping TokenSource = { $0(.success(nil)) }
    ) throws {
        self.tokens = tokens
        self.cache = cache
        self.isEager = isEager
        self.limboResolutionsMax = limboResolutionsMax
        backend = SpecBackend()
        credentials = SpecCredentials(.unauthenticated)
        core = try Self.makeCore(cache, isEager, limboResolutionsMax, folder, backend, credentials, tokens)
    }

    private static func makeCore(
        _ cache: SpecCache, _ isEager: Bool, _ limboResolutionsMax: Int, _ folder: TemporaryFolder,
        _ backend: SpecBackend,
        _ credentials: SpecCredentials, _ tokens: @escaping TokenSource
    ) throws -> SyncCore {
        let persistence: any Persistence
        switch cache {
        case .memory:
            let parameters = CollectionParameters(thresholdBytes: 100 << 20)
            persistence = MemoryPersistence(isEager ? .eager : .lru(parameters))
        case .durable:
            persistence = try SQLitePersistence(
                folder: folder.path, appName: "spec", database: database, sizeBytes: 100 << 20,
                onWarning: { Issue.record("\($0)") })
        }
        let options = SyncCore.Options(
            firesTimers: false, limboResolutionsMax: limboResolutionsMax, schedulesMaintenance: false,
            tokens: tokens)
        let core = SyncCore(
            database: database, persistence: persistence, datastore: backend, credentials: credentials,
            options: options)
        core.start()
        core.queue.drain()
        return core
    }

    /// Starts another client on the same cache.
    func restart() throws {
        let user = credentials.user
        stop()
        listeners = [:]
        inSyncListeners = []
        backend = SpecBackend()
        credentials = SpecCredentials(user)
        core = try Self.makeCore(cache, isEager, limboResolutionsMax, folder, backend, credentials, tokens)
    }

    private func stop() {
        core.terminate {}
        core.queue.drain()
    }

    func shutDown() {
        stop()
    }

    // MARK: User actions

    func engine<Output: Sendable>(_ body: (SyncEngine) throws(Status) -> Output) throws -> Output {
        let output = try core.perform(body)
        core.queue.drain()
        return output
    }

    func listen(_ query: ClientQuery, source: SyncClient.ListenOptions.Source) throws -> Int32 {
        let options = SyncClient.ListenOptions(
            includesDocumentMetadataChanges: true, includesQueryMetadataChanges: true, source: source)
        let listener = QueryListener(query, options) { [unowned self] event in
            switch event {
            case .success(let snapshot): events.append(.snapshot(snapshot))
            case .failure(let error): events.append(.failure(query, error))
            }
        }
        listeners[query] = listener
        return try engine { engine throws(Status) in try engine.eventManager.add(listener) }
    }

    func unlisten(_ query: ClientQuery) throws {
        guard let listener = listeners.removeValue(forKey: query) else {
            throw SpecFailure("There is no listener to \(query.canonicalID).")
        }
        try engine { engine throws(Status) in try engine.eventManager.remove(listener) }
    }

    func write(_ mutation: Mutation) throws {
        let path = mutation.key.string
        try engine { engine throws(Status) in
            try engine.write([mutation]) { [unowned self] error in
                // A terminated client leaves its pending writes to the next one.
                if error?.code == .cancelled { return }
                if error == nil { acknowledged.append(path) } else { rejected.append(path) }
            }
        }
    }

    func addInSyncListener() throws {
        let listener = InSyncListener()
        inSyncListeners.append(listener)
        try engine { engine throws(Status) in
            engine.eventManager.addInSyncListener(ObjectIdentifier(listener)) { [unowned self] in inSyncCount += 1 }
        }
    }

    func removeInSyncListener() throws {
        guard let listener = inSyncListeners.popLast() else { throw SpecFailure("No snapshots-in-sync listener.") }
        try engine { engine throws(Status) in engine.eventManager.removeInSyncListener(ObjectIdentifier(listener)) }
    }

    func waitForPendingWrites() throws {
        try engine { engine throws(Status) in
            try engine.waitForPendingWrites { [unowned self] _ in pendingWritesCount += 1 }
        }
    }

    func loadBundle(_ string: String) throws {
        let done = DispatchSemaphore(value: 0)
        let outcome = Outcome()
        let source = Source(Array(string.utf8))
        BundleLoader(core, read: { source.next($0) }) { progress, error in
            if progress.state == .inProgress { return }
            outcome.error = error
            done.signal()
        }.start()
        done.wait()
        core.queue.drain()
        if let error = outcome.error { throw SpecFailure("The bundle failed: \(error)") }
    }

    /// Written before the semaphore is signalled, read after.
    private final class Outcome: @unchecked Sendable {
        var error: Status?
    }

    /// Used only by the loader's thread.
    private final class Source: @unchecked Sendable {
        private var bytes: ArraySlice<UInt8>
        init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

        func next(_ count: Int) -> [UInt8] {
            let piece = bytes.prefix(count)
            bytes = bytes.dropFirst(count)
            return Array(piece)
        }
    }

    func collectGarbage(thresholdBytes: Int64) throws {
        try engine { engine throws(Status) in
            guard var parameters = engine.localStore.persistence.collector?.parameters else { return }
            parameters.thresholdBytes = thresholdBytes
            parameters.percentile = 100
            parameters.sequenceNumbersMax = 1000
            engine.localStore.persistence.collector?.parameters = parameters
            _ = try engine.localStore.collectGarbage()
        }
    }

    // MARK: Network actions

    func say(_ response: ListenResponse) throws {
        try backend.say(response)
        core.queue.drain()
    }

    /// Ends the backoff of waiting streams.
    func skipBackoff(ofWatchStream includesWatch: Bool) {
        for timer in [.listenStreamBackoff, .writeStreamBackoff] as [WorkerQueue.TimerName] {
            if timer == .listenStreamBackoff, !includesWatch { continue }
            while core.queue.isScheduled(timer) { core.queue.runDelayed(only: timer) }
        }
    }
}
