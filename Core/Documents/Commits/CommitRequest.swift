import HearthConcurrency
import HearthModel

/// A commit on its way through the pipeline.
struct CommitRequest: Sendable {
    var writes: [Write]
    /// The transaction's id and the state that it read.
    var transaction: (id: [UInt8], version: Int64?, readSet: ReadSet)?
    /// The owner of the locks that the commit must wait for.
    var owner: LockTable.Owner
    var requestTime: Timestamp
    /// Called before the commit is made; nil for administrators.
    var `guard`: (any CommitGuard)?
    var sizeBytes: Int
    /// The requester to whom the writer's time is charged.
    var requester = Requester.server
    /// Returns false when no caller waits for the answer any more; nil when one always does.
    var isWanted: (@Sendable () -> Bool)?
    /// The write whose outcome includes the document.
    var returning: Int?
    /// Its position in a resumable Write stream; nil for any other commit.
    var streamPosition: StreamPosition?
    /// When waiting for locks ends, in monotonic nanoseconds.
    var waitUntil: UInt64
    /// When it arrived.
    var submittedAt: UInt64 { waitUntil - min(waitUntil, UInt64(Limits.lockWaitSeconds * 1e9)) }
    var completion: @Sendable (Result<CommitOutcome, Status>) -> Void

    /// The writer's work for it, in units of `CommitCost`.
    var cost = 1
    /// Transforms that read all elements of an array; the request does not show how many there are.
    var arrayOperations = 0
    /// The memory of the decoded writes.
    var decodedBytes = 0
    /// The order in which commits arrived.
    var sequence: UInt64 = 0
    /// Whether it has returned to be prepared again; later commits of its connection are held back in the meantime.
    var isReturning = false
    /// The error found in that preparation: the commit fails at the writer, in the order of its connection.
    var failure: Status?
    /// The memory that it takes while it waits.
    var heldBytes: Int { max(sizeBytes, decodedBytes) }
    /// That memory, counted among all databases of the process.
    var held: MemoryReservation?
    /// Whether it takes the preparer's path: because it is large, or because an earlier one of the same connection is.
    var isSlow = false
    /// Whether its transaction has read documents that must be looked up in the history.
    var restsOnOldReads = false
    /// Whether the writer has found that it rests on large documents, which take long to process.
    var restsOnLargeDocuments = false
    /// The result of preparing it on a snapshot.
    var prepared: PreparedCommit?
    /// How often it was prepared.
    var preparations = 0

    var isAbandoned: Bool { isWanted.map { !$0() } ?? false }

    /// Whether it is prepared on a snapshot; the writer then only checks that the state that it read is unchanged.
    var isLarge: Bool {
        restsOnOldReads || restsOnLargeDocuments || cost >= CommitCost.largeUnitsMin
            || arrayOperations >= CommitCost.largeArrayOperationsMin
            || writes.count >= (`guard` == nil ? CommitCost.largeWritesMin : CommitCost.largeJudgedWritesMin)
    }
}

/// The approximate cost of a commit to the writer, estimated from the request alone.
enum CommitCost {
    /// The cost of one unit before anything was measured: about a record of the store.
    static let nanosecondsPerUnit = 3000.0

    /// A commit of at least this many units is prepared on a snapshot: some milliseconds.
    static let largeUnitsMin = 1000
    /// The same for this many writes, because the stored documents may be large.
    static let largeWritesMin = 100
    /// The same for writes that rules judge.
    static let largeJudgedWritesMin = 20
    /// Bytes of stored documents that the writer processes for one commit, about 5 ms; the request does not show their
    /// sizes.
    static let storedBytesOnWriterMax = 128 << 10
    /// The longest time that the writer may judge a commit again, when only documents that rules read have changed
    /// since it was prepared.
    static let judgeAgainNanosecondsMax: UInt64 = 20_000_000
    /// The same for this many operations on arrays, because the stored arrays may be large: each may take a
    /// millisecond.
    static let largeArrayOperationsMin = 8

    /// Of a group, about 50 ms of the writer's work; a larger commit is a group of its own.
    static let groupUnitsMax = 16_000

    /// Counts the values that become index entries, and bytes; and the memory of the writes.
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
            // Each record contains the document's name.
            measure.units += (measure.units - before) * (nameBytes / ValueMeasure.bytesPerUnit)
        }
        return measure
    }
}

/// The cost of values in storage and in memory, summed in one walk.
struct ValueMeasure {
    /// In units of `CommitCost`: one per value, and one for this many bytes.
    var units = 0
    static let bytesPerUnit = 256
    /// Of transforms.
    var arrayOperations = 0

    /// Approximate allocation sizes.
    var bytes = 0
    /// A message that contains a document's name: a write, a transform.
    static let messageBytes = 512
    /// An array or a string that has an allocation of its own.
    static let allocationBytes = 32

    /// The memory of a string beyond the value that contains it. Short strings have no allocation.
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
