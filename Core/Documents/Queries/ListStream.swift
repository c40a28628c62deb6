import HearthModel

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
