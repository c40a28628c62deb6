import HearthEngine
import HearthModel

/// The difference between the index entries of two states of a document.
struct IndexDifference: Sendable {
    enum Kind: Sendable {
        case deleted
        case inserted
        /// With the mark of a double: see `IndexKey`.
        case insertedDouble
    }

    /// The keys, one behind the other: two allocations for all of them.
    private var bytes: [UInt8] = []
    private var changes: [(end: Int, kind: Kind)] = []

    var count: Int { changes.count }
    var sizeBytes: Int { bytes.count }

    /// Calls `body` with the kind and the key of each change, in about the order of keys. The key is valid during the call.
    func forEach<Failure>(
        _ body: (Kind, UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(Failure) in
                var start = 0
                for change in changes {
                    try body(change.kind, UnsafeRawBufferPointer(rebasing: bytes[start..<change.end]))
                    start = change.end
                }
            }
        }
        try result.get()
    }

    /// Changes the entries of a store.
    func store(in transaction: any StoreTransaction) throws(Status) {
        try forEach { kind, key throws(Status) in
            switch kind {
            case .deleted: try transaction.delete(.entries, key)
            case .inserted: try transaction.put(.entries, key, UnsafeRawBufferPointer(start: nil, count: 0))
            case .insertedDouble:
                let put = IndexKey.doubleMark.withUnsafeBytes { mark in
                    Result { () throws(Status) in try transaction.put(.entries, key, mark) }
                }
                try put.get()
            }
        }
    }

    // MARK: Making

    mutating func reserve(changes count: Int, bytes sizeBytes: Int) {
        changes.reserveCapacity(count)
        bytes.reserveCapacity(sizeBytes)
    }

    mutating func append(_ kind: Kind, _ key: [UInt8]) {
        bytes.append(contentsOf: key)
        changes.append((bytes.count, kind))
    }

    /// Appends a key to which `body` appends the bytes.
    /// - Returns: the size of the key.
    @inline(__always)
    mutating func append(_ kind: Kind, _ body: (inout [UInt8]) -> Void) -> Int {
        let start = bytes.count
        body(&bytes)
        changes.append((bytes.count, kind))
        return bytes.count - start
    }

    /// Whether the keys of the last two changes, of these sizes, are equal.
    func lastAreEqual(_ sizeBytes: Int, _ otherBytes: Int) -> Bool {
        if sizeBytes != otherBytes { return false }
        let end = bytes.count
        return bytes.withUnsafeBytes { bytes in
            UTF8Order.compare(
                UnsafeRawBufferPointer(rebasing: bytes[end - 2 * sizeBytes..<end - sizeBytes]),
                UnsafeRawBufferPointer(rebasing: bytes[end - sizeBytes..<end])) == 0
        }
    }

    mutating func removeLast(_ count: Int) {
        changes.removeLast(count)
        bytes.removeLast(bytes.count - (changes.last?.end ?? 0))
    }
}
