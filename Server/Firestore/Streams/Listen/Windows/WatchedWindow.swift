import HearthConcurrency
import HearthModel
import HearthDocuments

/// The window of a query with a limit or an offset, for all targets of a loop that watch it.
///
/// It receives all changes of documents that match the query, in order. When a target needs the window for the first
/// time, it is found from the index, with some results behind it, and cached (`CachedWindow`). From then on the effect
/// of a change is computed from the cache, and each target asks for the documents that have entered, left or changed
/// since the version that it knows. A window that gets no memory for its cache is found anew each time; then the end of
/// a full window still decides which changes it does not show.
///
/// Pure: no loop, no index. Belongs to the loop.
struct WatchedWindow {
    private let live: LiveQuery
    /// At the version up to which changes have been applied.
    private var cached: CachedWindow?
    private var seen = WindowChanges(from: 0)
    /// Memory of `cached` and `seen`.
    private var memory: MemoryReservation?
    /// After a lack of memory: how many times the window is found before caching is tried again.
    private var attemptsToSkip = 0
    private var missed = MissedChanges()
    /// The position of the last result of a full window that is not cached; nil when it is unknown. A document that is
    /// behind it before and after a change is not in the window.
    private var edge: [UInt8]?
    /// The version of the last change that was not behind the edge.
    private var lastSeenVersion: Int64 = 0

    private static let attemptsSkipped = 16
    /// The extra memory of each reservation.
    private static let stepBytes = 4 << 10

    init(_ live: LiveQuery) { self.live = live }

    /// For tests that count work.
    var steps: Int { cached?.steps ?? 0 }

    // MARK: Changes

    /// Applies a change of a document that matches the query, or matched it.
    /// - Parameters:
    ///   - after: nil when it no longer matches.
    ///   - version: that of the commit.
    /// - Returns: whether the change can be seen in the window.
    mutating func take(
        key: [UInt8], before: FieldTable?, after: (fields: FieldTable, updateVersion: Int64)?, _ version: Int64
    ) throws(Status) -> Bool {
        if cached != nil || missed.isRecording {
            let position: [UInt8]? = if let after { try live.position(of: after.fields, key: key) } else { nil }
            let change = MissedChanges.Change(
                key: key, position: position, updateVersion: after?.updateVersion ?? 0, version: version)
            if cached != nil { return apply(change) }
            missed.note(change)
        } else {
            missed.pass(version)
        }
        if let edge, try live.isBehind(edge, before, key: key), try live.isBehind(edge, after?.fields, key: key) {
            return false
        }
        edge = nil
        lastSeenVersion = max(lastSeenVersion, version)
        return true
    }

    private mutating func apply(_ change: MissedChanges.Change) -> Bool {
        if case .seen(let keys)? = cached?.change(change.key, to: change.position, change.updateVersion) {
            seen.note(keys, change.version)
            if reserve() { return !keys.isEmpty }
            attemptsToSkip = Self.attemptsSkipped
        }
        forget(change.version)
        return true
    }

    /// Everything was deleted, or the cache is too short: the next target that needs the window has it found at this
    /// version or later.
    mutating func forget(_ version: Int64) {
        edge = nil
        cached = nil
        memory = nil
        missed.pass(version)
        lastSeenVersion = max(lastSeenVersion, version)
    }

    private func reserve() -> Bool {
        guard let cached, let memory else { return false }
        if cached.sizeBytes > Limits.listenCachedWindowBytesMax { return false }
        let bytes = cached.sizeBytes + seen.sizeBytes
        // A cache that shrinks a little keeps its memory.
        if bytes <= memory.bytes, memory.bytes - bytes <= 4 * Self.stepBytes { return true }
        return memory.resize(to: bytes + Self.stepBytes)
    }

    // MARK: Finding

    /// Whether the next search for the window must also fill the cache.
    mutating func needsCache() -> Bool {
        if cached != nil { return false }
        attemptsToSkip -= attemptsToSkip > 0 ? 1 : 0
        return attemptsToSkip == 0
    }

    /// A worker begins to find the window: changes are recorded until all searches have ended.
    mutating func beginFinding(_ memory: @autoclosure () -> MemoryReservation) { missed.begin(memory()) }
    mutating func endFinding() { missed.end() }

    /// Takes the result of a search, before the search is counted as ended.
    mutating func note(found result: WindowResult) throws(Status) {
        if cached == nil, result.isCaching {
            if let (window, memory) = result.takeCache() {
                store(window, memory, result.version)
            } else {
                attemptsToSkip = Self.attemptsSkipped
            }
        }
        if cached == nil { try noteEdge(of: result) }
    }

    private mutating func store(_ window: CachedWindow, _ memory: MemoryReservation, _ version: Int64) {
        // All changes since then must be known.
        guard let later = missed.changes(after: version) else { return }
        cached = window
        self.memory = memory
        seen = WindowChanges(from: version)
        if !reserve() {
            attemptsToSkip = Self.attemptsSkipped
            return forget(version)
        }
        for change in later where cached != nil { _ = apply(change) }
    }

    private mutating func noteEdge(of result: WindowResult) throws(Status) {
        guard result.version >= lastSeenVersion, let limit = live.query.query.limit, limit > 0,
            result.documents.count == limit, let last = result.last
        else { return }
        edge = try live.query.position(of: last)
    }

    // MARK: Asking

    /// The documents that have entered, left or changed in the window between two versions, each with its update
    /// version if it is in the window now; nil when the whole window must be compared.
    mutating func changes(since version: Int64, at now: Int64) -> [(key: [UInt8], updateVersion: Int64?)]? {
        guard cached != nil, seen.latest <= now, let keys = seen.keys(after: version) else { return nil }
        var changes: [(key: [UInt8], updateVersion: Int64?)] = []
        for key in keys { changes.append((key, cached?.updateVersion(of: key))) }
        return changes
    }

    /// The documents of the window, in order, with their update versions; nil when they are unknown.
    mutating func documents(at version: Int64) throws(Status) -> [(key: [UInt8], updateVersion: Int64)]? {
        guard seen.latest <= version, cached != nil else { return nil }
        var documents: [(key: [UInt8], updateVersion: Int64)] = []
        try cached?.forEach { key, updateVersion throws(Status) in documents.append((key, updateVersion)) }
        return documents
    }
}
