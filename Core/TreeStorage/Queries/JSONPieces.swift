import HearthModel
import HearthTree

/// Writes JSON of what a walk tells, and gives it away piece by piece.
///
/// While it may turn out that a node is an array, its text is kept; when that is much, it is found out ahead.
struct JSONPieces: SubtreeVisitor {
    var assembler: JSONAssembler
    let pieceBytes: Int
    /// Text that is kept while it isn't known what a node is.
    let undecidedBytesMax: Int
    /// Whether the node at some keys below the place is an array; asked of nodes whose keys so far are indexes.
    let isArray: (_ keys: [TreeKey]) throws(Status) -> Bool
    let sink: (inout [UInt8]) throws(Status) -> Void
    /// Those of the open nodes, but for the first.
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
    /// What is gathered before it is given away.
    static let pieceBytes = 64 << 10

    /// What is kept while it isn't known what a node is; then that is found out by a look at its children.
    static let undecidedBytesMax = 1 << 20

    /// Writes the JSON of all that is at a place, `null` of nothing, without having all of it in memory.
    /// - Parameter sink: takes a piece, and empties it. What it throws ends the walk.
    /// - Throws: RESOURCE_EXHAUSTED when it is more than `Limits.treeReadSizeBytesMax`.
    package func writeJSON(
        at path: TreePath, form: TreeJSON.Form, _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        try writeJSON(
            at: path, form: form, pieceBytes: Self.pieceBytes, undecidedBytesMax: Self.undecidedBytesMax, sink)
    }

    /// - Parameter pieceBytes: what is gathered before it is given away.
    func writeJSON(
        at path: TreePath, form: TreeJSON.Form, pieceBytes: Int, undecidedBytesMax: Int,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
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
            PathCode.place(path), in: snapshot, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
        try walk.run(&pieces)
        if isEmpty, pieces.assembler.string.isEmpty { pieces.assembler.appendNull() }
        if !pieces.assembler.string.isEmpty { try pieces.assembler.pour(sink) }
    }

    /// Whether a node is an array in the plain form: all its keys are indexes, and more than half of the indexes are there.
    ///
    /// Looks at all keys unless the last one or one of them says that it isn't: a number with zeros in front, which is no index,
    /// stands among the indexes.
    func isArray(at path: TreePath) throws(Status) -> Bool {
        let place = PathCode.place(path)
        let back = try ChildWalk(place, in: snapshot, reverse: true)
        defer { back.close() }
        // Most keys that are no indexes come last.
        guard try back.next(), let last = back.key.arrayIndex else { return false }
        let walk = try ChildWalk(place, in: snapshot)
        defer { walk.close() }
        var count = 0
        while try walk.next() {
            try check?.look()
            if walk.key.arrayIndex == nil { return false }
            count += 1
        }
        return last < 2 * count
    }
}
