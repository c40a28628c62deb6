import HearthConcurrency
import HearthModel

/// A commit on its way through the pipeline.
struct CommitRequest: Sendable {
    var writes: [Write]
    /// The transaction's id and the state on which its reads rest.
    var transaction: (id: [UInt8], version: Int64?, readSet: ReadSet)?
    /// Who takes the locks that the commit has to wait for.
    var owner: LockTable.Owner
    var requestTime: Timestamp
    /// Asked before the commit is made; nil for those who may do everything.
    var `guard`: (any CommitGuard)?
    var sizeBytes: Int
    /// Whose turn at the writer it takes.
    var requester = Requester.server
    /// False when nobody waits for the answer any more; nil when somebody always does.
    var isWanted: (@Sendable () -> Bool)?
    /// The write of which the outcome carries the document.
    var returning: Int?
    /// When waiting for locks ends, in monotonic nanoseconds.
    var waitUntil: UInt64
    var completion: @Sendable (Result<CommitOutcome, Status>) -> Void

    /// What the writer has to do, in `CommitCost.units`.
    var cost = 1
    /// Whether it goes by the preparer: because it is large, or because one before it on the same connection is.
    var isSlow = false
    /// Whether its transaction has read what must be looked up in the history.
    var restsOnOldReads = false
    /// What was worked out beside the writer.
    var prepared: PreparedCommit?
    /// How often that was done.
    var preparations = 0

    var isAbandoned: Bool { isWanted.map { !$0() } ?? false }

    /// Whether it is worked out beside the writer, which then only checks that nothing of it has changed since.
    var isLarge: Bool {
        restsOnOldReads || cost >= CommitCost.largeUnitsMin
            || writes.count >= (`guard` == nil ? CommitCost.largeWritesMin : CommitCost.largeJudgedWritesMin)
    }
}

/// About what a commit costs the writer, as far as the request alone tells it.
enum CommitCost {
    /// What one unit costs before anything was measured: about a record of the store.
    static let nanosecondsPerUnit = 3000.0

    /// From so many units on a commit is worked out beside the writer: some milliseconds.
    static let largeUnitsMin = 1000
    /// From so many writes on, because the stored documents may be large.
    static let largeWritesMin = 100
    /// The same of writes that rules judge.
    static let largeJudgedWritesMin = 20

    /// Of a group, about 50 ms of the writer's work; a larger commit is a group of its own.
    static let groupUnitsMax = 16_000

    private static let bytesPerUnit = 256

    /// Counts the values that become index entries, and bytes.
    static func units(of writes: [Write]) -> Int {
        var units = 0
        for write in writes {
            units += 1
            if case .update(let fields, _) = write.operation { units += self.units(of: fields) }
            for transform in write.transforms {
                switch transform.operation {
                case .appendMissingElements(let elements), .removeAllFromArray(let elements): units += elements.count
                case .requestTime, .increment, .maximum, .minimum: units += 1
                }
            }
        }
        return units
    }

    private static func units(of map: MapValue) -> Int {
        map.fields.reduce(0) { $0 + units(of: $1.value) }
    }

    private static func units(of value: Value) -> Int {
        switch value {
        case .string(let text): 1 + text.utf8.count / bytesPerUnit
        case .bytes(let bytes): 1 + bytes.count / bytesPerUnit
        case .vector(let elements): 1 + elements.count * 8 / bytesPerUnit
        case .array(let elements): elements.reduce(1) { $0 + units(of: $1) }
        case .map(let map): 1 + units(of: map)
        case .null, .boolean, .integer, .double, .timestamp, .reference, .geoPoint: 1
        }
    }
}
