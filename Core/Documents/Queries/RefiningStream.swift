import HearthModel

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
