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
    /// Its position in a Write stream that can be resumed; nil for any other commit.
    var streamPosition: StreamPosition?
    /// When waiting for locks ends, in monotonic nanoseconds.
    var waitUntil: UInt64
    /// When it came.
    var submittedAt: UInt64 { waitUntil - min(waitUntil, UInt64(Limits.lockWaitSeconds * 1e9)) }
    var completion: @Sendable (Result<CommitOutcome, Status>) -> Void

    /// What the writer has to do, in units of `CommitCost`.
    var cost = 1
    /// Transforms that look at all elements of an array, of which the request doesn't tell how many there are.
    var arrayOperations = 0
    /// What the decoded writes take in memory.
    var decodedBytes = 0
    /// In which order commits came.
    var sequence: UInt64 = 0
    /// Whether it has gone back to be prepared again; what came behind it on its connection is held back meanwhile.
    var isReturning = false
    /// What was found wrong with it then: it fails at the writer, at its place in the order of its connection.
    var failure: Status?
    /// What it takes in memory while it waits.
    var heldBytes: Int { max(sizeBytes, decodedBytes) }
    /// That memory, among all databases of the process.
    var held: MemoryReservation?
    /// Whether it goes by the preparer: because it is large, or because one before it on the same connection is.
    var isSlow = false
    /// Whether its transaction has read what must be looked up in the history.
    var restsOnOldReads = false
    /// Whether the writer has found that it rests on documents that take long to work on.
    var restsOnLargeDocuments = false
    /// What was worked out beside the writer.
    var prepared: PreparedCommit?
    /// How often that was done.
    var preparations = 0

    var isAbandoned: Bool { isWanted.map { !$0() } ?? false }

    /// Whether it is worked out beside the writer, which then only checks that nothing of it has changed since.
    var isLarge: Bool {
        restsOnOldReads || restsOnLargeDocuments || cost >= CommitCost.largeUnitsMin
            || arrayOperations >= CommitCost.largeArrayOperationsMin
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
    /// The writer works on stored documents of so many bytes for one commit, about 5 ms; the request doesn't tell their sizes.
    static let storedBytesOnWriterMax = 128 << 10
    /// Judging takes the writer so long at most, again, when only what rules look at has changed since a commit was prepared.
    static let judgeAgainNanosecondsMax: UInt64 = 20_000_000
    /// From so many operations on arrays on, because the stored arrays may be large: each may take a millisecond.
    static let largeArrayOperationsMin = 8

    /// Of a group, about 50 ms of the writer's work; a larger commit is a group of its own.
    static let groupUnitsMax = 16_000

    /// Counts the values that become index entries, and bytes; and what the writes take in memory.
    static func measure(_ writes: [Write]) -> ValueMeasure {
        var measure = ValueMeasure()
        for write in writes {
            let before = measure.units
            let nameBytes = write.document.path.segments.reduce(0) { $0 + $1.utf8.count }
            measure.units += 1
            measure.bytes += ValueMeasure.messageBytes + nameBytes
            if case .update(let fields, _) = write.operation { measure.add(fields) }
            for transform in write.transforms {
                measure.bytes += ValueMeasure.messageBytes
                switch transform.operation {
                case .appendMissingElements(let elements), .removeAllFromArray(let elements):
                    measure.units += elements.count
                    measure.addBytes(of: elements)
                case .requestTime, .increment, .maximum, .minimum: measure.units += 1
                }
                measure.arrayOperations += transform.isOnArray ? 1 : 0
            }
            // Each record has the document's name in it.
            measure.units += (measure.units - before) * (nameBytes / ValueMeasure.bytesPerUnit)
        }
        return measure
    }
}

/// What values cost to store and take in memory, added up in one walk.
struct ValueMeasure {
    /// In units of `CommitCost`: one a value, and one for so many bytes.
    var units = 0
    static let bytesPerUnit = 256
    /// Of transforms.
    var arrayOperations = 0

    /// About what is allocated.
    var bytes = 0
    /// A message with a document's name in it: a write, a transform.
    static let messageBytes = 512
    /// Of an array or a string that has an allocation of its own.
    static let allocationBytes = 32

    /// What a string takes beyond the value that it is in. Short ones have no allocation.
    static func bytes(ofString string: String) -> Int {
        string.utf8.count > 15 ? allocationBytes + string.utf8.count : 0
    }

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
        case .string(let string):
            units += string.utf8.count / Self.bytesPerUnit
            bytes += Self.bytes(ofString: string)
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
