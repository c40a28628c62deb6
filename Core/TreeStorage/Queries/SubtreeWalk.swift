import HearthModel
import HearthEngine
import HearthTree

/// The events of a subtree walk, in the order of keys.
protocol SubtreeVisitor {
    /// An inner node begins.
    /// - Parameter key: nil for the node at which the walk begins.
    mutating func open(_ key: TreeKey?, priority: Scalar?) throws(Status)
    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) throws(Status)
    /// The inner node that was opened last ends.
    mutating func close() throws(Status)
}

/// One scan over a subtree's records, as a sequence of nodes that begin and end.
struct SubtreeWalk {
    private let snapshot: any Snapshot
    private let base: [UInt8]
    private let cursor: any KeyCursor
    /// The ends of the open nodes' keys in `last`, the record before.
    private var ends: [Int] = []
    private var last: [UInt8] = []
    /// The approximate number of bytes that were read.
    private(set) var sizeBytes = 0
    /// The bytes of records above which the walk fails.
    private let sizeBytesMax: Int
    private let check: ReadCheck?

    /// The key of the location itself for a visitor.
    private let name: TreeKey?

    /// - Parameters:
    ///   - name: the location's key for a visitor that has received the event of the node around it.
    ///   - range: of whole keys at or below the location; nil for all.
    init(
        _ base: [UInt8], as name: TreeKey? = nil, in snapshot: any Snapshot, range: KeyRange? = nil, sizeBytesMax: Int,
        check: ReadCheck? = nil
    ) throws(Status) {
        self.check = check
        self.name = name
        self.snapshot = snapshot
        self.base = base
        self.sizeBytesMax = sizeBytesMax
        cursor = try snapshot.scan(
            .entries, range ?? KeyRange(prefix: base), reverse: false, values: true, dropping: base.count)
    }

    /// Children of the location that are complete.
    private(set) var completeChildren = 0

    /// Sends all events to a visitor; the location itself is opened when it has children.
    /// - Parameter children: stops when this number of children of the location is complete.
    mutating func run(_ visitor: inout some SubtreeVisitor, children: Int = .max) throws(Status) {
        defer { cursor.close() }
        while try cursor.next() {
            let key = cursor.key
            try count(key, cursor.value)
            let record = try TreeRecord(stored: cursor.value)
            if key.isEmpty {
                if record.isInner {
                    try visitor.open(name, priority: try record.priority)
                    ends.append(0)
                } else {
                    try visitor.leaf(name, try value(record, key), priority: try record.priority)
                }
                continue
            }
            if ends.isEmpty {
                try visitor.open(name, priority: nil)
                ends.append(0)
            }
            try leave(for: key, &visitor)
            if completeChildren >= children { break }
            try enter(key, record, &visitor)
        }
        while ends.count > 1 { try closeLast(&visitor) }
        if ends.popLast() != nil { try visitor.close() }
    }

    private mutating func closeLast(_ visitor: inout some SubtreeVisitor) throws(Status) {
        ends.removeLast()
        try visitor.close()
        if ends.count == 1 { completeChildren += 1 }
    }

    /// Ends the nodes that do not contain a record.
    private mutating func leave(for key: [UInt8], _ visitor: inout some SubtreeVisitor) throws(Status) {
        var shared = 0
        let most = min(key.count, last.count)
        while shared < most, key[shared] == last[shared] { shared += 1 }
        while let end = ends.last, end > shared { try closeLast(&visitor) }
    }

    private mutating func enter(
        _ key: [UInt8], _ record: TreeRecord, _ visitor: inout some SubtreeVisitor
    ) throws(Status) {
        var start = ends.last ?? 0
        while start < key.count {
            let end = try PathCode.end(of: key, from: start)
            let name = PathCode.key(key[start..<end])
            if end < key.count {
                try visitor.open(name, priority: nil)
                ends.append(end)
            } else if record.isInner {
                try visitor.open(name, priority: try record.priority)
                ends.append(end)
            } else {
                try visitor.leaf(name, try value(record, key), priority: try record.priority)
                if ends.count == 1 { completeChildren += 1 }
            }
            start = end
        }
        last = key
    }

    private func value(_ record: TreeRecord, _ key: [UInt8]) throws(Status) -> Scalar {
        let value = try record.value { () throws(Status) in
            guard let string = try snapshot.get(.documents, base + key) else { throw TreeRecord.damaged }
            return string
        }
        guard let value else { throw TreeRecord.damaged }
        return value
    }

    private mutating func count(_ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try check?.countRead()
        sizeBytes += key.count + value.count + Self.recordSizeBytes
        if value.first.map({ $0 & 0x0F == 6 }) == true { sizeBytes += try TreeRecord(stored: value).valueSizeBytes }
        if sizeBytes > sizeBytesMax { throw Self.tooLarge }
    }

    /// The approximate cost of a node besides its key and value.
    private static let recordSizeBytes = 32

    static let tooLarge = Status.resourceExhausted(
        "Data requested exceeds the maximum size that can be accessed with a single request.")
}

extension NodeHashBuilder: SubtreeVisitor {}
