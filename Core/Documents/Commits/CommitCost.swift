import HearthModel

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
