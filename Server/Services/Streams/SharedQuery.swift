import HearthConcurrency
import HearthModel
import HearthStorage

/// A query that one or more targets of a loop watch: what a commit does to it is worked out once for all of them.
/// `@unchecked Sendable`: belongs to the loop.
final class SharedQuery: @unchecked Sendable {
    /// What is the same for the same query.
    let digest: ByteDigest
    let live: LiveQuery
    /// On the account of who watched it first.
    private let held: MemoryReservation
    private(set) var targets: [ObjectIdentifier: ListenTarget] = [:]
    private var window: WindowResult?
    /// Where the last result of a full window stands; nil when that isn't known. What lies behind it before and after a
    /// change is not seen in the window.
    private var edge: [UInt8]?
    /// The version of the last change that was not behind the edge.
    private var lastSeenVersion: Int64 = 0
    private var waiting: [Int64: [(Result<WindowResult, Status>) -> Void]] = [:]

    init(_ digest: ByteDigest, _ live: LiveQuery, _ held: MemoryReservation) {
        self.digest = digest
        self.live = live
        self.held = held
    }

    func add(_ target: ListenTarget) { targets[ObjectIdentifier(target)] = target }

    func remove(_ target: ListenTarget) { targets[ObjectIdentifier(target)] = nil }

    /// Whether a change of a matching document can be seen in the window of a query with a limit or an offset.
    func isInWindow(
        key: [UInt8], before: FieldTable?, after: FieldTable?, _ version: Int64
    ) throws(Status) -> Bool {
        if let edge, try live.isBehind(edge, before, key: key), try live.isBehind(edge, after, key: key) {
            return false
        }
        edge = nil
        lastSeenVersion = max(lastSeenVersion, version)
        return true
    }

    /// Everything was deleted.
    func forgetWindow(_ version: Int64) {
        edge = nil
        window = nil
        lastSeenVersion = max(lastSeenVersion, version)
    }

    private func noteEdge(of result: WindowResult) throws(Status) {
        guard result.version >= lastSeenVersion, let limit = live.query.query.limit, limit > 0,
            result.documents.count == limit, let last = result.last
        else { return }
        edge = try live.query.position(of: last)
    }

    /// Results above this number are found by a worker.
    private static let inlineResultsMax = 300

    /// Finds the results of a query with a limit or an offset at a version.
    /// - Parameter done: called on the loop, now or later.
    func results(
        at version: Int64, in listeners: LoopListeners, _ service: FirestoreService, for requester: Requester,
        _ done: @escaping (Result<WindowResult, Status>) -> Void
    ) {
        if let window, window.version == version { return done(.success(window)) }
        if waiting[version] != nil {
            waiting[version]?.append(done)
            return
        }
        do throws(Status) {
            let memory = service.memory.sorting.reservation(for: requester)
            let run = try WindowRun(live, listeners.database.view(atVersion: version), memory)
            let size = (live.query.query.limit ?? .max).addingReportingOverflow(live.query.query.offset)
            if run.isLight, !size.overflow, size.partialValue <= Self.inlineResultsMax,
                let result = try run.finish(onLoop: true)
            {
                try noteEdge(of: result)
                // For the other streams of this turn; it holds a snapshot.
                window = result
                listeners.loop.execute { [weak self] in self?.window = nil }
                return done(.success(result))
            }
            waiting[version] = [done]
            let found: @Sendable (Result<WindowResult, Status>) -> Void = { [self] result in
                listeners.loop.execute { [self] in
                    let result = result.flatMap { found in
                        Result { () throws(Status) in
                            try noteEdge(of: found)
                            return found
                        }
                    }
                    for done in waiting.removeValue(forKey: version) ?? [] { done(result) }
                }
            }
            let (database, live, pool) = (listeners.database, live, service.pool)
            service.longReads.whenFree(for: requester) { read in
                switch read {
                case .failure(let status): found(.failure(status))
                case .success(let read):
                    pool.run(.short, for: requester, refused: { found(.failure($0)) }) {
                        found(
                            Result { () throws(Status) in
                                let run = try WindowRun(
                                    live, try database.view(atVersion: version, under: read), memory)
                                guard let result = try run.finish(onLoop: false) else {
                                    throw .internalError("A window has ended early.")
                                }
                                return result
                            })
                    }
                }
            }
        } catch {
            done(.failure(error))
        }
    }
}

/// What a query with a limit or an offset gave at a version. `@unchecked Sendable`: used by one thread at a time.
final class WindowResult: @unchecked Sendable {
    struct Entry {
        var key: [UInt8]
        var updateVersion: Int64
        /// Nil when it is read again where it is wanted.
        var document: StoredDocument?
    }

    let version: Int64
    let documents: [Entry]
    /// The documents' update versions.
    let versions: [[UInt8]: Int64]
    let last: QueryResult?
    /// What a target takes to note them.
    let sizeBytes: Int
    let view: ReadView
    /// Of what it holds.
    private let meter: WorkMeter

    init(version: Int64, _ documents: [Entry], last: QueryResult?, _ view: ReadView, _ meter: WorkMeter) {
        self.version = version
        self.documents = documents
        self.last = last
        self.view = view
        self.meter = meter
        sizeBytes = ListenWindow.sizeBytes(of: documents.lazy.map(\.key))
        versions = Dictionary(documents.map { ($0.key, $0.updateVersion) }) { $1 }
    }

    func document(_ entry: Entry) throws(Status) -> StoredDocument? {
        if let document = entry.document { return document }
        return try view.document(key: entry.key)
    }
}

/// A query that is about to be run, by one thread or another. `@unchecked Sendable`: it is handed over once.
private final class WindowRun: @unchecked Sendable {
    private let view: ReadView
    private let execution: QueryExecution
    private let meter: WorkMeter

    /// Documents of so many bytes are kept; of most windows all of them.
    private static let documentBytesMax = 1 << 20
    /// Of an entry in two tables, besides its key.
    private static let entryBytes = 192

    init(_ live: LiveQuery, _ view: ReadView, _ memory: MemoryReservation) throws(Status) {
        self.view = view
        meter = WorkMeter(memory: memory) {}
        execution = try QueryExecution(live.query, view: view, meter: meter)
    }

    var isLight: Bool { execution.isLight }

    /// - Returns: nil when that is too much work for a loop.
    func finish(onLoop: Bool) throws(Status) -> WindowResult? {
        meter.mayPause = onLoop
        var documents: [WindowResult.Entry] = []
        var documentBytes = 0
        var last: QueryResult?
        while let result = try execution.next() {
            let size = result.document.fields.count
            let isKept = documentBytes + size <= Self.documentBytesMax
            if isKept { documentBytes += size }
            try meter.hold(result.key.count + Self.entryBytes + (isKept ? size : 0))
            documents.append(
                WindowResult.Entry(
                    key: result.key, updateVersion: result.document.updateVersion,
                    document: isKept ? result.document : nil))
            last = result
        }
        if meter.isPaused { return nil }
        return WindowResult(version: view.version, documents, last: last, view, meter)
    }
}
