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

    /// What the writer has to do, in units of `CommitCost`.
    var cost = 1
    /// What the decoded writes take in memory.
    var decodedBytes = 0
    /// What it takes in memory while it waits.
    var heldBytes: Int { max(sizeBytes, decodedBytes) }
    /// That memory, among all databases of the process.
    var held: MemoryReservation?
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

    /// Counts the values that become index entries, and bytes; and what the writes take in memory.
    static func measure(_ writes: [Write]) -> ValueMeasure {
        var measure = ValueMeasure()
        for write in writes {
            measure.units += 1
            measure.bytes += ValueMeasure.messageBytes
            if case .update(let fields, _) = write.operation { measure.add(fields) }
            for transform in write.transforms {
                measure.bytes += ValueMeasure.messageBytes
                switch transform.operation {
                case .appendMissingElements(let elements), .removeAllFromArray(let elements):
                    measure.units += elements.count
                    measure.addBytes(of: elements)
                case .requestTime, .increment, .maximum, .minimum: measure.units += 1
                }
            }
        }
        return measure
    }
}

/// What values cost to store and take in memory, added up in one walk.
struct ValueMeasure {
    /// In units of `CommitCost`: one a value, and one for so many bytes.
    var units = 0
    private static let bytesPerUnit = 256

    /// About what is allocated.
    var bytes = 0
    /// A message with a document's name in it: a write, a transform.
    static let messageBytes = 512
    /// Of an array or a string that has an allocation of its own.
    static let allocationBytes = 32

    /// What a string takes beyond the value that it is in. Short ones have no allocation.
    static func bytes(ofString text: String) -> Int { text.utf8.count > 15 ? allocationBytes + text.utf8.count : 0 }

    mutating func add(_ map: MapValue) {
        bytes += Self.allocationBytes + map.fields.count * MemoryLayout<MapValue.Field>.stride
        for field in map.fields {
            bytes += Self.bytes(ofString: field.name)
            add(field.value)
        }
    }

    mutating func add(_ value: Value) {
        units += 1
        switch value {
        case .string(let text):
            units += text.utf8.count / Self.bytesPerUnit
            bytes += Self.bytes(ofString: text)
        case .reference(let name): bytes += Self.bytes(ofString: name)
        case .bytes(let content):
            units += content.count / Self.bytesPerUnit
            bytes += Self.allocationBytes + content.count
        case .vector(let elements):
            units += elements.count * 8 / Self.bytesPerUnit
            bytes += Self.allocationBytes + elements.count * 8
        case .array(let elements):
            bytes += Self.allocationBytes + elements.count * MemoryLayout<Value>.stride
            for element in elements { add(element) }
        case .map(let map): add(map)
        case .null, .boolean, .integer, .double, .timestamp, .geoPoint: break
        }
    }

    /// The bytes of elements that cost one unit each.
    mutating func addBytes(of elements: [Value]) {
        var measure = ValueMeasure()
        measure.add(.array(elements))
        bytes += measure.bytes
    }
}
