import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// The changes that a target's client does not know yet, as messages of a Listen stream: documents that were added,
/// changed or removed since the version that the client knows. When the client states how many documents it holds, the
/// server also checks that count.
///
/// The history states exactly what was removed. A count that differs therefore means that the client has lost documents
/// or has too many. A filter of the matching names then lets the client find out which. Source:
/// google.firestore.v1.ExistenceFilter.
///
/// A worker compares the two states without a pause. Differences are held by name, in counted memory. Documents are
/// read when they are sent, so that a stream that waits for a slow client holds no snapshot.
final class ListenResume: MessageSource {
    private static let falsePositiveRate = 0.0001

    private let target: ListenSubscription
    /// The state to send, and the one that the client knows. The second is used only for the comparison.
    private var view: ReadView?
    private var past: ReadView?
    private let version: Int64
    private let pastVersion: Int64
    private let readTime: Timestamp
    private let database: Database
    private let counts: ResultCounts
    private let expectedCount: Int?
    private let isJudged: Bool
    private let format: MessageFormat
    private let work: WorkMeter
    private var names: DocumentNames
    private var isPrepared = false
    private var differences: [Difference] = []
    private var sentCount = 0
    private var filter: [UInt8]?
    /// The history lacks what the client needs: the client gets everything anew.
    private(set) var isTooOld = false
    /// See `ListenSubscription.window`.
    let window: ListenWindow?

    private struct Difference {
        var key: [UInt8]
        var was: Bool
        var now: Bool

        /// In addition to the bytes of the key.
        static let sizeBytes = 64
    }

    /// - Parameters:
    ///   - view: the state to send.
    ///   - past: the state that the client knows.
    ///   - isJudged: whether rules decide what it reads.
    init(
        _ target: ListenSubscription, _ view: ReadView, since past: ReadView, _ database: Database,
        _ counts: ResultCounts,
        expectedCount: Int?, isJudged: Bool, format: MessageFormat, cancellation: Cancellation,
        memory: MemoryReservation, window: ListenWindow?
    ) {
        self.target = target
        self.view = view
        self.past = past
        version = view.version
        pastVersion = past.version
        readTime = view.readTime
        self.window = window
        self.expectedCount = expectedCount
        self.isJudged = isJudged
        self.format = format
        self.database = database
        self.counts = counts
        names = DocumentNames(database.name)
        work = WorkMeter(memory: memory) { () throws(Status) in try cancellation.check() }
    }

    var isLight: Bool { false }
    var isPaused: Bool { false }
    var meter: WorkMeter? { work }

    var isSuspended: Bool { view == nil }

    func hold(_ read: LongRead) {
        view?.hold(read)
        past?.hold(read)
    }

    /// The feed knows both states while it reaches back to them.
    func suspend() {
        view = nil
        past = nil
    }

    func resume(_ read: LongRead?) throws(Status) {
        let view = try database.view(atVersion: version, under: read)
        if !isPrepared { past = try database.view(atVersion: pastVersion, under: read) }
        self.view = view
    }

    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
        guard let view else { throw .internalError("A suspended resume was asked for a message.") }
        if let past, !isPrepared {
            try prepare(view, past)
            isPrepared = true
            self.past = nil
        }
        if sentCount < differences.count {
            sentCount += 1
            messages.append(try message(differences[sentCount - 1], view))
            return true
        }
        guard let filter else { return false }
        messages.append(filter)
        self.filter = nil
        return true
    }

    private func message(_ difference: Difference, _ view: ReadView) throws(Status) -> [UInt8] {
        let name = try names.name(key: difference.key)
        guard let document = try view.document(key: difference.key) else {
            return format.encode(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: name, removedTargetIds: [target.id], readTime: TimestampMessage(readTime))))
        }
        let recipients = DocumentRecipients(
            showing: difference.now ? [target] : [], left: difference.now ? [] : [target], isJudged: isJudged)
        guard let change = recipients.changes.first else {
            return format.encode(
                ListenResponse(
                    documentRemove: DocumentRemoveMessage(
                        document: name, removedTargetIds: recipients.removedByName,
                        readTime: TimestampMessage(readTime))))
        }
        return try ListenLoad.change(
            try FirestoreService.encoded(document, name: name, change.projection), change.ids,
            removed: change.removed, format)
    }

    private func prepare(_ view: ReadView, _ past: ReadView) throws(Status) {
        let count: Int
        let found: [Difference]?
        switch target.kind {
        case .documents(let keys): (found, count) = try documents(keys, view, past)
        case .query(let shared) where shared.live.isWindow: (found, count) = try windows(shared.live, view, past)
        case .query(let shared): (found, count) = try changes(shared, view)
        }
        guard let found else {
            isTooOld = true
            return
        }
        differences = found
        // Clients misread a filter of a documents target: an SDK infers a deletion from it, and stores that deletion as
        // older than everything it knows.
        if let expectedCount, case .query = target.kind {
            try prepareFilter(count, isExpected: count - Self.growth(found) == expectedCount, view)
        }
    }

    private func note(_ difference: Difference, in found: inout [Difference]) throws(Status) {
        try work.hold(difference.key.count + Difference.sizeBytes)
        found.append(difference)
    }

    private func documents(
        _ keys: [[UInt8]], _ view: ReadView, _ past: ReadView
    ) throws(Status) -> ([Difference]?, Int) {
        var found: [Difference] = []
        var count = 0
        for key in keys {
            try work.chargeEntry()
            let document = try view.document(key: key)
            work.chargeDocument(document?.fields.count ?? 0)
            if document != nil { count += 1 }
            if let document, document.updateVersion <= past.version { continue }
            // A missing document is reported each time: the client may not have stored that.
            let was = try past.document(key: key) != nil
            found.append(Difference(key: key, was: was, now: document != nil))
        }
        return (found, count)
    }

    private func windows(
        _ live: LiveQuery, _ view: ReadView, _ past: ReadView
    ) throws(Status) -> ([Difference]?, Int) {
        var known: Set<[UInt8]> = []
        let before = try QueryExecution(live.query, view: past, meter: work)
        while let result = try before.next() {
            try work.hold(result.key.count + Difference.sizeBytes)
            known.insert(result.key)
        }
        var found: [Difference] = []
        let execution = try QueryExecution(live.query, view: view, meter: work)
        var count = 0
        while let result = try execution.next() {
            count += 1
            try window?.note(result.key, result.document.updateVersion)
            let was = known.remove(result.key) != nil
            if was, result.document.updateVersion <= past.version { continue }
            try note(Difference(key: result.key, was: was, now: true), in: &found)
        }
        for key in known.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            found.append(Difference(key: key, was: true, now: false))
        }
        return (found, count)
    }

    private func changes(_ shared: SharedQuery, _ view: ReadView) throws(Status) -> ([Difference]?, Int) {
        guard let found = try matching(shared.live, since: pastVersion, view) else { return (nil, 0) }
        return (found, expectedCount == nil ? 0 : try count(shared, found, view))
    }

    /// The changes of a query's result. Documents are read one by one, and again when they are sent.
    private func matching(
        _ live: LiveQuery, since version: Int64, _ view: ReadView
    ) throws(Status) -> [Difference]? {
        let changes = try view.changes(
            in: live, since: version, changesMax: Limits.listenResumeChangesMax, meter: work)
        guard let changes else { return nil }
        var found: [Difference] = []
        for key in changes.keys where live.concerns(key) {
            let was = try live.matches(try changes.before(key), key: key)
            let now = try live.matches(try changes.after(key), key: key)
            if was || now { try note(Difference(key: key, was: was, now: now), in: &found) }
        }
        return found
    }

    /// The number of results. They are counted only when no recent count exists.
    /// - Parameter found: the changes since the version that the client knows.
    private func count(_ shared: SharedQuery, _ found: [Difference], _ view: ReadView) throws(Status) -> Int {
        var count: Int?
        if let known = counts.entry(database, shared.digest), known.version <= version {
            var since: [Difference]? = found
            if known.version != pastVersion {
                since = try matching(shared.live, since: known.version, view)
            }
            if let since { count = known.count + Self.growth(since) }
        }
        if count == nil { count = try keys(shared.live, view).count(limit: .max) }
        let result = count ?? 0
        counts.note(ResultCounts.Entry(version: version, count: result), database, shared.digest)
        return result
    }

    private static func growth(_ differences: [Difference]) -> Int {
        differences.count { $0.now && !$0.was } - differences.count { $0.was && !$0.now }
    }

    private func keys(_ live: LiveQuery, _ view: ReadView) throws(Status) -> QueryExecution {
        try QueryExecution(live.query, view: view, meter: work, keysOnly: true)
    }

    // MARK: Filter

    private func prepareFilter(_ count: Int, isExpected: Bool, _ view: ReadView) throws(Status) {
        var message = ExistenceFilterMessage(targetId: target.id, count: Int32(clamping: count))
        if !isExpected, (expectedCount ?? 0) > 0, count > 0, count <= Limits.listenFilterNamesMax,
            case .query(let shared) = target.kind
        {
            var filter = BloomFilter(count: count, falsePositiveRate: Self.falsePositiveRate)
            let execution = try keys(shared.live, view)
            var isWhole = true
            while isWhole, let key = try execution.nextKey() {
                let hash = DocumentNameHash.md5(try names.name(key: key))
                if let hash { filter.insert(hash) }
                isWhole = hash != nil
            }
            // Without names a client whose count differs reads the target again.
            if isWhole {
                message.unchangedNames = BloomFilterMessage(
                    bits: BitSequenceMessage(bitmap: filter.bitmap, padding: Int32(clamping: filter.padding)),
                    hashCount: Int32(clamping: filter.hashCount))
            }
        }
        filter = format.encode(ListenResponse(filter: message))
    }
}
