import HearthModel
import HearthStorage
import HearthWire

/// What a target's client doesn't know yet, as messages of a Listen stream: the documents that came, changed or went since
/// the version that it knows, and, where it says how many documents it holds, how many it should.
///
/// The history tells exactly what went, so a count that doesn't fit means that the client has lost or kept something on its
/// own account; then a filter of the matching names lets it find out what. Source: google.firestore.v1.ExistenceFilter.
final class ListenResume: MessageSource {
    private static let falsePositiveRate = 0.0001

    private let target: ListenTarget
    private let view: ReadView
    private let past: ReadView
    private let database: Database
    private let counts: ResultCounts
    private let expectedCount: Int?
    private let isJudged: Bool
    private let format: MessageFormat
    private let meter: WorkMeter
    private var names: DocumentNames
    private var isPrepared = false
    private var differences: [Difference] = []
    private var sentCount = 0
    private var filter: [UInt8]?
    /// The history doesn't tell what the client needs: it gets everything anew.
    private(set) var isTooOld = false
    /// See `ListenTarget.window`.
    private(set) var window: [[UInt8]: Int64] = [:]

    private struct Difference {
        var key: [UInt8]
        var was: Bool
        var now: Bool
    }

    /// - Parameters:
    ///   - view: the state that the client is brought to.
    ///   - past: the state that it knows.
    ///   - isJudged: whether rules decide what it reads.
    init(
        _ target: ListenTarget, _ view: ReadView, since past: ReadView, _ database: Database, _ counts: ResultCounts,
        expectedCount: Int?, isJudged: Bool, format: MessageFormat, cancellation: Cancellation
    ) {
        self.target = target
        self.view = view
        self.past = past
        self.expectedCount = expectedCount
        self.isJudged = isJudged
        self.format = format
        self.database = database
        self.counts = counts
        names = DocumentNames(database.name)
        meter = WorkMeter { () throws(Status) in try cancellation.check() }
    }

    var isLight: Bool { false }

    /// Two states are compared in one go; both are held until then.
    var isSuspended: Bool { false }
    func hold(_ read: LongRead) {
        view.hold(read)
        past.hold(read)
    }
    func suspend() {}
    func resume(_ read: LongRead) throws(Status) {}

    func next() throws(Status) -> [UInt8]? {
        if !isPrepared { try prepare() }
        isPrepared = true
        if sentCount < differences.count {
            sentCount += 1
            return try message(differences[sentCount - 1])
        }
        defer { filter = nil }
        return filter
    }

    private func message(_ difference: Difference) throws(Status) -> [UInt8] {
        let name = try names.name(key: difference.key)
        guard let document = try view.document(key: difference.key) else {
            return format.encode(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: name, removedTargetIds: [target.id], readTime: TimestampMessage(view.readTime))))
        }
        let delivery = ListenDelivery(
            showing: difference.now ? [target] : [], left: difference.now ? [] : [target], isJudged: isJudged)
        guard let change = delivery.changes.first else {
            return format.encode(
                ListenResponse(
                    documentRemove: DocumentRemoveMessage(
                        document: name, removedTargetIds: delivery.removedByName,
                        readTime: TimestampMessage(view.readTime))))
        }
        return try ListenLoad.change(
            try FirestoreService.encoded(document, name: name, change.projection), change.ids,
            removed: change.removed, format)
    }

    private func prepare() throws(Status) {
        let count: Int
        let found: [Difference]?
        switch target.kind {
        case .documents(let keys): (found, count) = try documents(keys)
        case .query(let shared) where shared.live.isWindow: (found, count) = try windows(shared.live)
        case .query(let shared): (found, count) = try changes(shared)
        }
        guard let found else {
            isTooOld = true
            return
        }
        differences = found
        // Clients take a filter of a documents target for more than it says: an SDK stores the deletion that it infers from one
        // as older than all that it knows.
        if let expectedCount, case .query = target.kind {
            try prepareFilter(count, isExpected: count - Self.growth(found) == expectedCount)
        }
    }

    private func documents(_ keys: [[UInt8]]) throws(Status) -> ([Difference]?, Int) {
        var found: [Difference] = []
        var count = 0
        for key in keys {
            let document = try view.document(key: key)
            if document != nil { count += 1 }
            if let document, document.updateVersion <= past.version { continue }
            // That a document is missing is said each time: a client may not have kept it.
            let was = try past.document(key: key) != nil
            found.append(Difference(key: key, was: was, now: document != nil))
        }
        return (found, count)
    }

    private func windows(_ live: LiveQuery) throws(Status) -> ([Difference]?, Int) {
        var known: Set<[UInt8]> = []
        let before = try QueryExecution(live.query, view: past, meter: meter)
        while let result = try before.next() { known.insert(result.key) }
        var found: [Difference] = []
        let execution = try QueryExecution(live.query, view: view, meter: meter)
        while let result = try execution.next() {
            window[result.key] = result.document.updateVersion
            let was = known.remove(result.key) != nil
            if was, result.document.updateVersion <= past.version { continue }
            found.append(Difference(key: result.key, was: was, now: true))
        }
        for key in known.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            found.append(Difference(key: key, was: true, now: false))
        }
        return (found, window.count)
    }

    private func changes(_ shared: SharedQuery) throws(Status) -> ([Difference]?, Int) {
        guard let found = try matching(shared.live, since: past.version) else { return (nil, 0) }
        return (found, expectedCount == nil ? 0 : try count(shared, found))
    }

    /// What changed of a query's result. Documents are read one by one, and again when they are sent.
    private func matching(_ live: LiveQuery, since version: Int64) throws(Status) -> [Difference]? {
        let changes = try view.changes(
            in: live, since: version, changesMax: Limits.listenResumeChangesMax, meter: meter)
        guard let changes else { return nil }
        var found: [Difference] = []
        for key in changes.keys where live.concerns(key) {
            let was = try live.matches(try changes.before(key), key: key)
            let now = try live.matches(try changes.after(key), key: key)
            if was || now { found.append(Difference(key: key, was: was, now: now)) }
        }
        return found
    }

    /// How many results there are; counted only when nobody has lately.
    /// - Parameter found: what changed since the version that the client knows.
    private func count(_ shared: SharedQuery, _ found: [Difference]) throws(Status) -> Int {
        var count: Int?
        if let known = counts.entry(database, shared.digest), known.version <= view.version {
            var since: [Difference]? = found
            if known.version != past.version {
                since = try matching(shared.live, since: known.version)
            }
            if let since { count = known.count + Self.growth(since) }
        }
        if count == nil { count = try keys(shared.live).count(limit: .max) }
        let result = count ?? 0
        counts.note(ResultCounts.Entry(version: view.version, count: result), database, shared.digest)
        return result
    }

    private static func growth(_ differences: [Difference]) -> Int {
        differences.count { $0.now && !$0.was } - differences.count { $0.was && !$0.now }
    }

    private func keys(_ live: LiveQuery) throws(Status) -> QueryExecution {
        try QueryExecution(live.query, view: view, meter: meter, keysOnly: true)
    }

    // MARK: Filter

    private func prepareFilter(_ count: Int, isExpected: Bool) throws(Status) {
        var message = ExistenceFilterMessage(targetId: target.id, count: Int32(clamping: count))
        if !isExpected, (expectedCount ?? 0) > 0, count > 0, count <= Limits.listenFilterNamesMax,
            case .query(let shared) = target.kind
        {
            var filter = BloomFilter(count: count, falsePositiveRate: Self.falsePositiveRate)
            let execution = try keys(shared.live)
            while let key = try execution.nextKey() { filter.insert(DocumentNameHash.md5(try names.name(key: key))) }
            message.unchangedNames = BloomFilterMessage(
                bits: BitSequenceMessage(bitmap: filter.bitmap, padding: Int32(filter.padding)),
                hashCount: Int32(filter.hashCount))
        }
        filter = format.encode(ListenResponse(filter: message))
    }
}
