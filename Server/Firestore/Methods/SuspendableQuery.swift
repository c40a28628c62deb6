import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments

/// The results of a query that can release its snapshot at any time. It continues later from the same position, in the
/// same state.
///
/// A query whose results are in an index's order continues behind the last result. A query that sorts holds the sorted
/// keys, and reads each document on request. A query that waits for its client therefore holds counted memory, and no
/// snapshot. Used by one thread at a time.
final class SuspendableQuery {
    private let query: NormalizedQuery
    let meter: WorkMeter
    private let reopen: (LongRead?) throws(Status) -> ReadView
    private let isSorted: Bool
    private var view: ReadView?
    private var execution: QueryExecution?
    /// The keys of a sorted query, once they are known.
    private var keys: [(key: [UInt8], distance: Double?)]?
    private var position = 0
    private var returned = 0
    /// The last returned result, from which a suspended query continues.
    private var last: QueryResult?
    private var lastPosition: [UInt8]?
    private(set) var skippedResults = 0
    /// The query needs work that an event loop must not do: a missing next result then does not mean that there are no
    /// more.
    private(set) var isPaused = false
    let indexesUsed: [QueryExecution.IndexUse]

    /// - Parameters:
    ///   - view: a short one, until `hold`.
    ///   - reopen: opens the same state for a long read, or for a short one.
    ///   - Throws: FAILED_PRECONDITION for a missing index when `requireIndexes`.
    init(
        _ query: NormalizedQuery, _ view: ReadView, meter: WorkMeter, requireIndexes: Bool,
        reopen: @escaping (LongRead?) throws(Status) -> ReadView
    ) throws(Status) {
        let execution = try QueryExecution(query, view: view, meter: meter, requireIndexes: requireIndexes)
        self.query = query
        self.view = view
        self.meter = meter
        self.reopen = reopen
        self.execution = execution
        isSorted = execution.isSorted
        indexesUsed = execution.indexesUsed
    }

    /// Whether an event loop may find the next results.
    var isLight: Bool { !isPaused && (execution?.isLight ?? false) }

    // MARK: Snapshots

    var isSuspended: Bool { view == nil }

    /// Holds the snapshot for a long read from now on.
    func hold(_ read: LongRead) { view?.hold(read) }

    func suspend() {
        if execution != nil, keys == nil {
            do throws(Status) {
                // A position needs less memory than a document.
                if let last { lastPosition = try query.position(of: last) }
            } catch {
                // The document is damaged. The query keeps its snapshot and continues with it.
                return
            }
        }
        last = nil
        execution = nil
        view = nil
    }

    /// - Parameter read: nil for a short one.
    func resume(_ read: LongRead?) throws(Status) {
        let view = try reopen(read)
        self.view = view
        guard keys == nil else { return }
        let rest =
            lastPosition.map { position in
                query.continued(after: position, remaining: query.query.limit.map { $0 - returned }, offset: 0)
            } ?? query
        execution = try QueryExecution(rest, view: view, meter: meter)
    }

    // MARK: Results

    /// - Parameter onLoop: whether the query stops (`isPaused`) where it would cost much more than its results.
    /// - Throws: INTERNAL while the query is suspended.
    func next(onLoop: Bool = false) throws(Status) -> QueryResult? {
        meter.mayPause = onLoop
        meter.isPaused = false
        if isSorted, keys == nil { try sort() }
        if let keys { return try next(of: keys) }
        guard let execution else { throw .internalError("A suspended query was asked for a result.") }
        let result = try execution.next()
        if meter.isPaused { isPaused = true }
        if lastPosition == nil { skippedResults = execution.skippedResults }
        if let result {
            returned += 1
            last = result
        }
        return result
    }

    private func sort() throws(Status) {
        guard let execution else { throw .internalError("A suspended query was asked for a result.") }
        keys = try execution.takeKeys()
        skippedResults = execution.skippedResults
        self.execution = nil
    }

    private func next(of keys: [(key: [UInt8], distance: Double?)]) throws(Status) -> QueryResult? {
        guard let view else { throw .internalError("A suspended query was asked for a result.") }
        while position < keys.count {
            let (key, distance) = keys[position]
            position += 1
            if let document = try view.document(key: key) {
                meter.chargeDocument(document.fields.count)
                return QueryResult(key: key, document: document, distance: distance)
            }
        }
        return nil
    }
}
