import HearthModel

/// A running query: returns its results one after the other, in order, from one view.
///
/// Used by one thread at a time. It holds the view's snapshot open, so its owner releases it when it is no longer read.
package final class QueryExecution {
    package let query: NormalizedQuery
    let plan: QueryPlan
    package let view: ReadView
    package let meter: WorkMeter
    private let keysOnly: Bool
    /// Made by the first step: for a past state it costs a walk over the changes since, which callers that only plan
    /// should not pay.
    private var started: (context: QueryContext, stream: CandidateStream)?
    private var remaining: Int
    private var toSkip: Int
    /// Results that the query's offset has skipped so far.
    package private(set) var skippedResults = 0
    package private(set) var resultsReturned = 0
    private var nearest: [Neighbour]?

    /// - Parameter requireIndexes: fail where the service does, which answers from defined indexes alone.
    /// - Throws: FAILED_PRECONDITION for a missing index when `requireIndexes`.
    package convenience init(
        _ query: NormalizedQuery, view: ReadView, meter: WorkMeter = WorkMeter(), requireIndexes: Bool = false
    ) throws(Status) {
        try self.init(query, view: view, meter: meter, requireIndexes: requireIndexes, keysOnly: false)
    }

    /// - Parameter keysOnly: only `nextKey` and `count` will be called.
    package init(
        _ query: NormalizedQuery, view: ReadView, meter: WorkMeter, requireIndexes: Bool = false, keysOnly: Bool
    ) throws(Status) {
        self.query = query
        self.view = view
        self.meter = meter
        if requireIndexes, let missing = RequiredIndexes(query: query, catalog: view.catalog).missing {
            throw missing.status(database: query.query.parent.database)
        }
        plan = try Planner(query: query, catalog: view.catalog, snapshot: view.snapshot).plan()
        self.keysOnly = keysOnly
        remaining = query.query.findNearest == nil ? query.query.limit ?? .max : .max
        toSkip = query.query.offset
    }

    private func start() throws(Status) -> (context: QueryContext, stream: CandidateStream) {
        if let started { return started }
        let context = try QueryContext(
            query, view: view, meter: meter, keysOnly: keysOnly, isMerged: plan.branches.count > 1)
        let new = (context: context, stream: try Self.stream(plan, context))
        started = new
        return new
    }

    private static func stream(_ plan: QueryPlan, _ context: QueryContext) throws(Status) -> CandidateStream {
        var inputs: [CandidateStream] = []
        for branch in plan.branches {
            inputs.append(RefiningStream(BranchStream(branch, context), context))
        }
        if let overlay = context.overlay { inputs.append(try ListStream(overlay, context)) }
        return inputs.count == 1 ? inputs[0] : MergingStream(inputs)
    }

    /// Whether the work is proportional to the results, so that it may run in slices on an event loop.
    package var isLight: Bool { plan.isLight(query) && !view.isPast }

    /// The next result; nil at the end, or when the query yields (`WorkMeter.isPaused`).
    package func next() throws(Status) -> QueryResult? {
        if query.query.findNearest != nil { return try nextNearest() }
        guard remaining > 0 else { return nil }
        let (context, stream) = try start()
        while toSkip > 0 {
            guard try stream.next() != nil else { return nil }
            toSkip -= 1
            skippedResults += 1
        }
        while let candidate = try stream.next() {
            guard let document = try context.document(of: candidate) else { continue }
            remaining -= 1
            resultsReturned += 1
            return QueryResult(key: candidate.key, document: document)
        }
        if !meter.isPaused { remaining = 0 }
        return nil
    }

    /// The next result's key alone, without reading the document. Not for nearest-neighbour searches.
    package func nextKey() throws(Status) -> [UInt8]? {
        guard remaining > 0 else { return nil }
        let stream = try start().stream
        while toSkip > 0 {
            guard try stream.next() != nil else { return nil }
            toSkip -= 1
            skippedResults += 1
        }
        guard let candidate = try stream.next() else { return nil }
        remaining -= 1
        return candidate.key
    }

    /// The number of results, counted up to a limit: by the store's own count where the plan's ranges contain nothing
    /// else.
    package func count(limit: Int) throws(Status) -> Int {
        let limit = min(limit, remaining)
        guard !view.isPast, plan.isDisjoint, plan.branches.allSatisfy({ $0.sources.count == 1 && $0.isExact }) else {
            var count = 0
            while count < limit, try nextKey() != nil { count += 1 }
            return count
        }
        let (most, overflow) = limit.addingReportingOverflow(toSkip)
        var total = 0
        for source in plan.branches.map({ $0.sources[0] }) {
            for range in source.ranges where overflow || total < most {
                // One more than it may read shows that it is too much.
                let found = try view.snapshot.count(
                    source.keyspace, Planner.absolute(range, prefix: source.prefix),
                    limit: min(overflow ? .max : most - total, meter.entriesMost))
                try meter.charge(entries: found)
                total += found
            }
        }
        return min(limit, max(0, total - toSkip))
    }

    /// An index that the plan reads, as explain shows it.
    package struct IndexUse: Sendable {
        package var properties: String
        package var isGroupScope: Bool
    }

    package var indexesUsed: [IndexUse] { plan.indexesUsed(query) }

    /// Whether no result is known before all of them have been found and sorted.
    package var isSorted: Bool {
        if query.query.findNearest != nil { return true }
        return plan.branches.contains { branch in
            !branch.isFullyOrdered(query.orders)
                && !branch.parts.contains { if case .constant = $0 { false } else { true } }
        }
    }

    /// The keys of all remaining results, with their distances: the state of a sorted query whose documents are read
    /// later.
    package func takeKeys() throws(Status) -> [(key: [UInt8], distance: Double?)] {
        if query.query.findNearest != nil {
            if nearest == nil { nearest = try searchNearest() }
            defer { nearest = [] }
            return (nearest ?? []).reversed().map { ($0.key, $0.distance) }
        }
        var keys: [(key: [UInt8], distance: Double?)] = []
        var heldBytes = 0
        do throws(Status) {
            while let key = try nextKey() {
                heldBytes += key.count + 64
                try meter.hold(key.count + 64)
                keys.append((key, nil))
            }
        } catch {
            // It may start again.
            meter.release(heldBytes)
            throw error
        }
        return keys
    }

    private func searchNearest() throws(Status) -> [Neighbour] {
        let (context, stream) = try start()
        return try NearestNeighbours.search(query) { () throws(Status) -> QueryResult? in
            guard let candidate = try stream.next() else { return nil }
            guard let document = try context.document(of: candidate) else { return nil }
            return QueryResult(key: candidate.key, document: document)
        }.reversed()
    }

    private func nextNearest() throws(Status) -> QueryResult? {
        if nearest == nil {
            nearest = try searchNearest()
        }
        while let neighbour = nearest?.popLast() {
            guard let document = try view.document(key: neighbour.key) else { continue }
            resultsReturned += 1
            return QueryResult(key: neighbour.key, document: document, distance: neighbour.distance)
        }
        return nil
    }
}
