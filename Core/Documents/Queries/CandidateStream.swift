import HearthEngine
import HearthModel
import HearthWire

/// A candidate document of a query, known by its key; its content is read on demand.
struct Candidate {
    var key: [UInt8]
    /// Its position in the query's order, or the known start of it; empty when it is not needed.
    var orderKey: [UInt8]
    /// Whether `orderKey` is whole and exact.
    var isComplete: Bool
    var document: StoredDocument?
}

/// A sequence of candidates in the order of a query.
class CandidateStream {
    func next() throws(Status) -> Candidate? { nil }
}

/// State that the streams of one query share.
final class QueryContext {
    let query: NormalizedQuery
    let view: ReadView
    let matcher: QueryMatcher
    let meter: WorkMeter
    let overlay: PastOverlay?
    /// Whether only the keys of the results are wanted.
    let keysOnly: Bool
    /// Whether order keys are needed for candidates that arrive in order anyway.
    let needsOrderKeys: Bool
    private let fetcher: DocumentFetcher
    /// The memory of the overlay, counted while the query uses it.
    private let overlayBytes: Int

    /// - Parameter isMerged: the results come from several streams.
    init(
        _ query: NormalizedQuery, view: ReadView, meter: WorkMeter, keysOnly: Bool = false, isMerged: Bool = false
    ) throws(Status) {
        self.query = query
        self.keysOnly = keysOnly
        self.view = view
        self.meter = meter
        matcher = QueryMatcher(query)
        overlay = try view.overlay(of: ScopeChanges.Scope(query.query), meter)
        overlayBytes = overlay?.heldBytes ?? 0
        fetcher = DocumentFetcher(view.snapshot, reverse: query.nameDescending)
        needsOrderKeys = isMerged || query.hasBounds || overlay != nil
        try meter.hold(overlayBytes)
    }

    deinit { meter.release(overlayBytes) }

    /// Results beyond this many are never requested; nil when there is no limit.
    var resultsMax: Int? {
        query.query.findNearest == nil ? query.query.limit.map { $0 + query.query.offset } : nil
    }

    /// The content of a candidate, read now if it was not read before.
    func document(of candidate: Candidate) throws(Status) -> StoredDocument? {
        if let document = candidate.document { return document }
        return try load(candidate.key)
    }

    /// Reads a document as the view shows it.
    func load(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        let document =
            if let overlay, overlay.replaces(key) { try overlay.document(key) } else { try fetcher.document(key) }
        meter.chargeDocument(document?.fields.count ?? 0)
        return document
    }
}

/// The candidates of one branch of the plan, filtered, and ordered as far as its sources order them.
final class BranchStream: CandidateStream {
    private let branch: QueryPlan.Branch
    private let context: QueryContext
    private let join: JoinCursor
    /// Whether the cursor returns the documents themselves.
    private let scansDocuments: Bool
    private let isFullyOrdered: Bool
    private var isOver = false
    /// Where each component of the present suffix ends, and whether one of them is cut.
    private var ends: [Int] = []
    private var isCut: [Bool] = []

    init(_ branch: QueryPlan.Branch, _ context: QueryContext) {
        self.branch = branch
        self.context = context
        let isSingle = branch.sources.count == 1
        let scansDocuments =
            isSingle && branch.sources[0].keyspace == .documents
            && !(context.keysOnly && branch.residual.isEmpty && branch.alternatives.isEmpty)
        self.scansDocuments = scansDocuments
        isFullyOrdered = branch.isFullyOrdered(context.query.orders)
        join = JoinCursor(
            branch.sources.map {
                SuffixCursor(
                    $0, reverse: branch.reverse, values: scansDocuments, snapshot: context.view.snapshot,
                    meter: context.meter)
            })
    }

    override func next() throws(Status) -> Candidate? {
        while !isOver, try join.next() {
            if let candidate = try candidate(join.suffix) { return candidate }
        }
        return nil
    }

    /// Filters from cheap to expensive: first by the suffix, then by the document.
    private func candidate(_ suffix: [UInt8]) throws(Status) -> Candidate? {
        guard findComponents(suffix) else { throw Self.damaged }
        let name = branch.nameComplemented ? suffix[(ends.last ?? 0)...].map(~)[...] : suffix[(ends.last ?? 0)...]
        guard let key = documentKey(name) else { throw Self.damaged }
        if let overlay = context.overlay, overlay.replaces(key) { return nil }
        if branch.checksScope, !context.matcher.isInScope(key) { return nil }
        if let names = branch.names, !names.contains(context.query.relativeName(key: key)) { return nil }
        for filter in branch.components where !filter.ranges.contains(component(filter.component, suffix)) {
            return nil
        }
        var candidate = Candidate(key: key, orderKey: [], isComplete: true)
        if context.needsOrderKeys || !isFullyOrdered || isCut.contains(true) {
            appendOrderKey(suffix, name, to: &candidate)
            if !isWithinBounds(candidate) { return nil }
        }
        if scansDocuments {
            context.meter.chargeDocument(join.value.count)
            candidate.document = try StoredDocument(stored: join.value)
        }
        if !branch.residual.isEmpty || !branch.alternatives.isEmpty {
            if candidate.document == nil { candidate.document = try context.load(key) }
            guard let document = candidate.document,
                try context.matcher.matches(branch.residual, key: key, fields: document.fields),
                try matchesAlternative(key, document)
            else { return nil }
        }
        return candidate
    }

    private func matchesAlternative(_ key: [UInt8], _ document: StoredDocument) throws(Status) -> Bool {
        if branch.alternatives.isEmpty { return true }
        for alternative in branch.alternatives {
            if try context.matcher.matches(alternative, key: key, fields: document.fields) { return true }
        }
        return false
    }

    private static var damaged: Status { Status(.dataLoss, "An index entry can't be read.") }

    /// Whether a candidate is within the query's bounds, as far as its order key is known. Order keys only grow, so the
    /// first one after the upper bound ends the scan.
    private func isWithinBounds(_ candidate: Candidate) -> Bool {
        guard context.query.hasBounds else { return true }
        if let upper = context.query.bounds.upper, UTF8Order.compare(candidate.orderKey, upper) >= 0 {
            isOver = true
            return false
        }
        return !candidate.isComplete || UTF8Order.compare(candidate.orderKey, context.query.bounds.lower) >= 0
    }

    /// False when the suffix can't be read.
    private func findComponents(_ suffix: [UInt8]) -> Bool {
        ends.removeAll(keepingCapacity: true)
        isCut.removeAll(keepingCapacity: true)
        for complemented in branch.complemented {
            guard let end = IndexValue.end(of: suffix, from: ends.last ?? 0, complemented: complemented) else {
                return false
            }
            ends.append(end.end)
            isCut.append(end.isCut)
        }
        return true
    }

    /// A component in ascending form.
    private func component(_ index: Int, _ suffix: [UInt8]) -> [UInt8] {
        let bytes = suffix[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
        return branch.complemented[index] ? bytes.map(~) : Array(bytes)
    }

    private func documentKey(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var key: [UInt8] = []
        key.reserveCapacity(branch.keyPrefix.count + name.count)
        key.append(contentsOf: branch.keyPrefix)
        key.append(contentsOf: name)
        return branch.nameIsPath ? DocumentKey.fromPathKey(key) : key
    }

    private func appendOrderKey(_ suffix: [UInt8], _ name: ArraySlice<UInt8>, to candidate: inout Candidate) {
        var scanned = 0
        for part in branch.parts {
            switch part {
            case .constant(let bytes): candidate.orderKey.append(contentsOf: bytes)
            case .scanned:
                let component = suffix[(scanned == 0 ? 0 : ends[scanned - 1])..<ends[scanned]]
                NormalizedQuery.appendComponent(Array(component), descending: branch.reverse, to: &candidate.orderKey)
                scanned += 1
                if isCut[scanned - 1] {
                    candidate.isComplete = false
                    return
                }
            case .name:
                NormalizedQuery.appendComponent(
                    branch.namePrefix + name, descending: context.query.nameDescending, to: &candidate.orderKey)
            }
        }
        candidate.isComplete = isFullyOrdered
    }
}

/// Sorts within groups of candidates whose order is known only in part, by the contents of the documents.
final class RefiningStream: CandidateStream {
    private let input: CandidateStream
    private let context: QueryContext
    private let readsDocuments: Bool
    private var group: [Candidate] = []
    private var position = 0
    private var lookahead: Candidate?
    private var heldBytes = 0
    /// The known part of the order keys of the group that is being gathered.
    private var gathering: [UInt8]?

    /// Documents of a group that are gathered before a query yields.
    private static let gatheredMax = 16

    init(_ input: CandidateStream, _ context: QueryContext) {
        self.input = input
        self.context = context
        readsDocuments = context.query.orders.count > 1
    }

    deinit { context.meter.release(heldBytes) }

    override func next() throws(Status) -> Candidate? {
        while true {
            if let gathering, try !gather(gathering) { return nil }
            if position < group.count {
                position += 1
                return group[position - 1]
            }
            group.removeAll(keepingCapacity: true)
            position = 0
            context.meter.release(heldBytes)
            heldBytes = 0
            guard let first = try nextInput() else { return nil }
            if first.isComplete { return first }
            gathering = first.orderKey
            try add(first)
        }
    }

    private func nextInput() throws(Status) -> Candidate? {
        guard let candidate = lookahead else { return try input.next() }
        lookahead = nil
        return candidate
    }

    /// Collects the other candidates with the same known part, and sorts them all.
    /// - Returns: whether that is complete; otherwise the query has yielded.
    private func gather(_ known: [UInt8]) throws(Status) -> Bool {
        while true {
            if context.meter.mayPause, group.count >= Self.gatheredMax {
                context.meter.isPaused = true
                return false
            }
            guard let candidate = try input.next() else { break }
            if candidate.isComplete || candidate.orderKey != known {
                lookahead = candidate
                break
            }
            try add(candidate)
        }
        gathering = nil
        sort()
        return true
    }

    private func add(_ candidate: Candidate) throws(Status) {
        var candidate = candidate
        if readsDocuments {
            guard let document = try context.document(of: candidate),
                let key = try context.query.orderKey(fields: document.fields, key: candidate.key)
            else { return }
            candidate.orderKey = key
        } else {
            NormalizedQuery.appendComponent(
                context.query.relativeName(key: candidate.key), descending: context.query.orders[0].descending,
                to: &candidate.orderKey)
        }
        if context.query.hasBounds, !context.query.isWithinBounds(candidate.orderKey) { return }
        candidate.isComplete = true
        // Contents are read again when they are sent: a sort holds only keys.
        candidate.document = nil
        group.append(candidate)
        let bytes = Self.heldBytes(candidate)
        heldBytes += bytes
        try context.meter.hold(bytes)
        try bound()
    }

    /// Drops candidates that a limit can never reach, and fails when the query would hold more than it may.
    private func bound() throws(Status) {
        if let most = context.resultsMax, group.count > 2 * most + 1000 {
            sort()
            group.removeLast(group.count - most)
            let rest = group.reduce(0) { $0 + Self.heldBytes($1) }
            context.meter.release(heldBytes - rest)
            heldBytes = rest
        }
    }

    /// Includes the allocator's overhead of two arrays, and the slot in the group.
    private static func heldBytes(_ candidate: Candidate) -> Int {
        candidate.orderKey.count + candidate.key.count + 2 * 48 + MemoryLayout<Candidate>.stride
    }

    private func sort() {
        group.sort { UTF8Order.compare($0.orderKey, $1.orderKey) < 0 }
    }
}

/// Merges streams in the order of their keys; a document that comes from several appears once.
final class MergingStream: CandidateStream {
    private let inputs: [CandidateStream]
    private var heads: [Candidate?] = []
    private var isPrimed = false
    private var last: [UInt8]?

    init(_ inputs: [CandidateStream]) {
        self.inputs = inputs
    }

    override func next() throws(Status) -> Candidate? {
        if !isPrimed {
            for input in inputs { heads.append(try input.next()) }
            isPrimed = true
        }
        while let index = smallest() {
            let candidate = heads[index]!
            heads[index] = try inputs[index].next()
            if candidate.orderKey == last { continue }
            last = candidate.orderKey
            return candidate
        }
        return nil
    }

    private func smallest() -> Int? {
        var best: Int?
        for index in heads.indices {
            guard let head = heads[index] else { continue }
            if let present = best, UTF8Order.compare(heads[present]!.orderKey, head.orderKey) <= 0 { continue }
            best = index
        }
        return best
    }
}

/// Candidates that are known beforehand, in order.
final class ListStream: CandidateStream {
    private let candidates: [Candidate]
    private let meter: WorkMeter
    /// The memory counted for them.
    private let countedBytes: Int
    private var position = 0

    /// The documents of a past state that match a query. Their contents are read again when they are sent.
    /// - Throws: RESOURCE_EXHAUSTED when they are too many to be sorted.
    init(_ overlay: PastOverlay, _ context: QueryContext) throws(Status) {
        var matching: [Candidate] = []
        var heldBytes = 0
        var countedBytes = 0
        let meter = context.meter
        func sort() { matching.sort { UTF8Order.compare($0.orderKey, $1.orderKey) < 0 } }
        for key in overlay.keys where context.matcher.isInScope(key) {
            guard let document = try context.load(key),
                try context.matcher.matches(key: key, fields: document.fields),
                let orderKey = try context.query.orderKey(fields: document.fields, key: key),
                context.query.isWithinBounds(orderKey)
            else { continue }
            matching.append(Candidate(key: key, orderKey: orderKey, isComplete: true, document: nil))
            heldBytes += orderKey.count + key.count + 96
            if heldBytes > countedBytes {
                let more = heldBytes - countedBytes
                countedBytes = heldBytes
                do throws(Status) { try meter.hold(more) } catch {
                    meter.release(countedBytes)
                    throw error
                }
            }
            if let most = context.resultsMax, matching.count > 2 * most + 1000 {
                sort()
                matching.removeLast(matching.count - most)
                heldBytes = matching.reduce(0) { $0 + $1.orderKey.count + $1.key.count + 96 }
            }
        }
        sort()
        candidates = matching
        self.meter = meter
        self.countedBytes = countedBytes
    }

    deinit { meter.release(countedBytes) }

    override func next() throws(Status) -> Candidate? {
        guard position < candidates.count else { return nil }
        position += 1
        return candidates[position - 1]
    }
}
