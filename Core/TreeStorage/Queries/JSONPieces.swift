import HearthModel
import HearthTree

/// Writes the JSON of the events of a walk, and passes it on piece by piece.
///
/// While a node can still become an array, its output is held back; when that is much, its form is determined ahead.
struct JSONPieces: SubtreeVisitor {
    var assembler: JSONAssembler
    let pieceBytes: Int
    /// Output that is held back while the form of a node isn't known.
    let undecidedBytesMax: Int
    /// Whether the node at some keys below the location is an array; is called for nodes whose keys so far are indexes.
    let isArray: (_ keys: [TreeKey]) throws(Status) -> Bool
    let sink: (inout [UInt8]) throws(Status) -> Void
    /// Those of the open nodes, except the first.
    private var keys: [TreeKey] = []
    private var openCount = 0

    init(
        form: TreeJSON.Form, pieceBytes: Int, undecidedBytesMax: Int,
        isArray: @escaping (_ keys: [TreeKey]) throws(Status) -> Bool,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) {
        assembler = JSONAssembler(appendingTo: [], form: form)
        self.pieceBytes = pieceBytes
        self.undecidedBytesMax = undecidedBytesMax
        self.isArray = isArray
        self.sink = sink
    }

    mutating func open(_ key: TreeKey?, priority: Scalar?) {
        assembler.open(key, priority: priority)
        if openCount > 0, let key { keys.append(key) }
        openCount += 1
    }

    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) throws(Status) {
        assembler.leaf(key, value, priority: priority)
        if assembler.string.count >= pieceBytes { try pour() }
    }

    mutating func close() throws(Status) {
        assembler.close()
        openCount -= 1
        if openCount > 0 { keys.removeLast() }
        if assembler.string.count >= pieceBytes { try pour() }
    }

    private mutating func pour() throws(Status) {
        if assembler.string.count >= undecidedBytesMax {
            for number in assembler.undecided {
                assembler.decide(number, isArray: try isArray(Array(keys.prefix(number))))
            }
        }
        if assembler.isSettled { try assembler.pour(sink) }
    }
}

extension TreeView {
    /// The size of a piece.
    static let pieceBytes = 64 << 10

    /// The output that is held back while the form of a node isn't known; above it the node's children are read to
    /// determine it.
    static let undecidedBytesMax = 1 << 20

    /// Writes the JSON of the data at a location, `null` when there is none, without having all of it in memory.
    /// - Parameters:
    ///   - sizeBytesMax: of the data.
    ///   - sink: takes a piece, and empties it. An error that it throws ends the walk.
    /// - Throws: RESOURCE_EXHAUSTED when it is more.
    package func writeJSON(
        at path: TreePath, form: TreeJSON.Form, sizeBytesMax: Int = Limits.treeReadSizeBytesMax,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        try writeJSON(
            at: path, form: form, sizeBytesMax: sizeBytesMax, pieceBytes: Self.pieceBytes,
            undecidedBytesMax: Self.undecidedBytesMax, sink)
    }

    /// - Parameter pieceBytes: the size of a piece.
    func writeJSON(
        at path: TreePath, form: TreeJSON.Form, sizeBytesMax: Int = Limits.treeReadSizeBytesMax, pieceBytes: Int,
        undecidedBytesMax: Int, _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        var isEmpty = true
        var pieces = JSONPieces(
            form: form, pieceBytes: pieceBytes, undecidedBytesMax: undecidedBytesMax,
            isArray: { keys throws(Status) in try self.isArray(at: TreePath(keys: path.keys + keys)) },
            { (piece: inout [UInt8]) throws(Status) in
                isEmpty = false
                try sink(&piece)
            })
        var walk = try SubtreeWalk(
            PathCode.location(path), in: snapshot, sizeBytesMax: sizeBytesMax, check: check)
        try walk.run(&pieces)
        if isEmpty, pieces.assembler.string.isEmpty { pieces.assembler.appendNull() }
        if !pieces.assembler.string.isEmpty { try pieces.assembler.pour(sink) }
    }

    /// Whether a node is an array in the plain form: all its keys are indexes, and more than half of the indexes exist.
    ///
    /// Reads all keys unless the last one or one of them shows that it isn't an array: a number with leading zeros,
    /// which is no index, sorts among the indexes.
    func isArray(at path: TreePath) throws(Status) -> Bool {
        let location = PathCode.location(path)
        let back = try ChildWalk(location, in: snapshot, reverse: true)
        defer { back.close() }
        // Most keys that are no indexes come last.
        guard try back.next(), let last = back.key.arrayIndex else { return false }
        let walk = try ChildWalk(location, in: snapshot)
        defer { walk.close() }
        var count = 0
        while try walk.next() {
            try check?.countRead()
            if walk.key.arrayIndex == nil { return false }
            count += 1
        }
        return last < 2 * count
    }
}
