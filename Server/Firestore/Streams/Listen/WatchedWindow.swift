import HearthConcurrency
import HearthModel
import HearthDocuments

/// What is known of the window of a query with a limit or an offset, for all targets of a loop that watch it.
///
/// It goes through all changes of documents that match the query, in order. When somebody needs the window for the first time,
/// it is found from the index, with some results behind it, and kept (`KeptWindow`); from then on a change is worked out from
/// what is kept, and each target asks for the documents that have come, left or changed since the version that it knows. What
/// finds no room is found anew each time; then the end of a full window still tells which changes it does not show.
///
/// Pure: no loop, no index. Belongs to the loop.
struct WatchedWindow {
    private let live: LiveQuery
    /// At the version up to which changes have been worked in.
    private var kept: KeptWindow?
    private var seen = SeenChanges(from: 0)
    /// Of both.
    private var memory: MemoryReservation?
    /// How often the window is found before what is kept of it is tried again, after there was no room.
    private var attemptsToSkip = 0
    private var missed = MissedChanges()
    /// Where the last result of a full window that isn't kept stands; nil when that isn't known. What lies behind it before
    /// and after a change is not seen in the window.
    private var edge: [UInt8]?
    /// The version of the last change that was not behind the edge.
    private var lastSeenVersion: Int64 = 0

    private static let attemptsSkipped = 16
    /// How much more is reserved than is needed at the moment.
    private static let stepBytes = 4 << 10

    init(_ live: LiveQuery) { self.live = live }

    var isKept: Bool { kept != nil }
    /// For tests that count work.
    var steps: Int { kept?.steps ?? 0 }

    // MARK: Changes

    /// Works in a change of a document that matches the query, or did.
    /// - Parameters:
    ///   - after: nil when it doesn't match any more.
    ///   - version: that of the commit.
    /// - Returns: whether the change can be seen in the window.
    mutating func take(
        key: [UInt8], before: FieldTable?, after: (fields: FieldTable, updateVersion: Int64)?, _ version: Int64
    ) throws(Status) -> Bool {
        if kept != nil || missed.isRecording {
            let position: [UInt8]? = if let after { try live.position(of: after.fields, key: key) } else { nil }
            let change = MissedChanges.Change(
                key: key, position: position, updateVersion: after?.updateVersion ?? 0, version: version)
            if kept != nil { return keepUp(change) }
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

    private mutating func keepUp(_ change: MissedChanges.Change) -> Bool {
        if case .seen(let keys)? = kept?.change(change.key, to: change.position, change.updateVersion) {
            seen.note(keys, change.version)
            if reserve() { return !keys.isEmpty }
            attemptsToSkip = Self.attemptsSkipped
        }
        forget(change.version)
        return true
    }

    /// Everything was deleted, or what is kept isn't enough: whoever needs the window has it found at this version or later.
    mutating func forget(_ version: Int64) {
        edge = nil
        kept = nil
        memory = nil
        missed.pass(version)
        lastSeenVersion = max(lastSeenVersion, version)
    }

    private func reserve() -> Bool {
        guard let kept, let memory else { return false }
        if kept.sizeBytes > Limits.listenKeptWindowBytesMax { return false }
        let bytes = kept.sizeBytes + seen.sizeBytes
        // What shrinks a little keeps what it has.
        if bytes <= memory.bytes, memory.bytes - bytes <= 4 * Self.stepBytes { return true }
        return memory.resize(to: bytes + Self.stepBytes)
    }

    // MARK: Finding

    /// Whether somebody who finds the window now is to find what is kept, too.
    mutating func isToBeKept() -> Bool {
        if kept != nil { return false }
        attemptsToSkip -= attemptsToSkip > 0 ? 1 : 0
        return attemptsToSkip == 0
    }

    /// A worker begins to find the window: what changes meanwhile is noted until as many have ended.
    mutating func beginFinding(_ memory: @autoclosure () -> MemoryReservation) { missed.begin(memory()) }
    mutating func endFinding() { missed.end() }

    /// Takes what was found, before the end of the finding.
    mutating func note(found result: WindowResult) throws(Status) {
        if kept == nil, result.isToBeKept {
            if let (window, memory) = result.takeKept() {
                keep(window, memory, result.version)
            } else {
                attemptsToSkip = Self.attemptsSkipped
            }
        }
        if kept == nil { try noteEdge(of: result) }
    }

    private mutating func keep(_ window: KeptWindow, _ memory: MemoryReservation, _ version: Int64) {
        // Of what changed since then nothing may be missing.
        guard let later = missed.changes(after: version) else { return }
        kept = window
        self.memory = memory
        seen = SeenChanges(from: version)
        if !reserve() {
            attemptsToSkip = Self.attemptsSkipped
            return forget(version)
        }
        for change in later where kept != nil { _ = keepUp(change) }
    }

    private mutating func noteEdge(of result: WindowResult) throws(Status) {
        guard result.version >= lastSeenVersion, let limit = live.query.query.limit, limit > 0,
            result.documents.count == limit, let last = result.last
        else { return }
        edge = try live.query.position(of: last)
    }

    // MARK: Asking

    /// The documents that have come, left or changed in the window between two versions, each with its update version if it
    /// stands there now; nil when the whole has to be compared.
    mutating func changes(since version: Int64, at now: Int64) -> [(key: [UInt8], updateVersion: Int64?)]? {
        guard kept != nil, seen.latest <= now, let keys = seen.keys(after: version) else { return nil }
        var changes: [(key: [UInt8], updateVersion: Int64?)] = []
        for key in keys { changes.append((key, kept?.updateVersion(of: key))) }
        return changes
    }

    /// The documents of the window, in order, with their update versions; nil when they aren't known.
    mutating func documents(at version: Int64) throws(Status) -> [(key: [UInt8], updateVersion: Int64)]? {
        guard seen.latest <= version, kept != nil else { return nil }
        var documents: [(key: [UInt8], updateVersion: Int64)] = []
        try kept?.forEach { key, updateVersion throws(Status) in documents.append((key, updateVersion)) }
        return documents
    }
}

/// Changes that those who find a window at an older version don't know. Bounded: what is found has to be found again when
/// more has changed meanwhile.
struct MissedChanges {
    struct Change {
        var key: [UInt8]
        /// Nil when the document doesn't match any more.
        var position: [UInt8]?
        var updateVersion: Int64
        /// That of the commit.
        var version: Int64
    }

    private var changes: [Change] = []
    private var bytes = 0
    /// All changes after this version are here.
    private var from: Int64 = 0
    private var findings = 0
    private var memory: MemoryReservation?

    private static let countMax = 1000
    private static let bytesMax = 256 << 10
    private static let entryBytes = 128

    var isRecording: Bool { findings > 0 }

    mutating func begin(_ memory: @autoclosure () -> MemoryReservation) {
        findings += 1
        if self.memory == nil { self.memory = memory() }
    }

    mutating func end() {
        findings -= 1
        guard findings == 0 else { return }
        pass(changes.last?.version ?? 0)
        memory = nil
    }

    mutating func note(_ change: Change) {
        let more = change.key.count + (change.position?.count ?? 0) + Self.entryBytes
        let hasCapacity =
            changes.count < Self.countMax && bytes + more <= Self.bytesMax
            && (memory?.resize(to: bytes + more) ?? false)
        guard hasCapacity else { return pass(change.version) }
        bytes += more
        changes.append(change)
    }

    /// Changes up to a version aren't kept here.
    mutating func pass(_ version: Int64) {
        from = max(from, version)
        if changes.isEmpty { return }
        changes.removeAll { $0.version <= from }
        bytes = changes.reduce(0) { $0 + $1.key.count + ($1.position?.count ?? 0) + Self.entryBytes }
        memory?.resize(to: bytes)
    }

    /// In order; nil when some are missing.
    func changes(after version: Int64) -> [Change]? {
        version < from ? nil : changes.filter { $0.version > version }
    }
}
