import HearthModel
import HearthTree

/// Writes JSON of what a walk tells, and gives it away piece by piece.
struct JSONPieces: SubtreeVisitor {
    var assembler: JSONAssembler
    let pieceBytes: Int
    let sink: (inout [UInt8]) throws(Status) -> Void

    mutating func open(_ key: TreeKey?, priority: Scalar?) { assembler.open(key, priority: priority) }

    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) throws(Status) {
        assembler.leaf(key, value, priority: priority)
        if assembler.text.count >= pieceBytes { try pour() }
    }

    mutating func close() throws(Status) {
        assembler.close()
        if assembler.text.count >= pieceBytes { try pour() }
    }

    private mutating func pour() throws(Status) {
        if assembler.isSettled { try assembler.pour(sink) }
    }
}

extension TreeView {
    /// What is gathered before it is given away.
    static let pieceBytes = 64 << 10

    /// Writes the JSON of all that is at a place, `null` of nothing, without having all of it in memory; only what may turn
    /// out to be an array is kept until its end.
    /// - Parameter sink: takes a piece, and empties it. What it throws ends the walk.
    /// - Throws: RESOURCE_EXHAUSTED when it is more than `Limits.treeReadSizeBytesMax`.
    public func writeJSON(
        at path: TreePath, form: TreeJSON.Form, _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        try writeJSON(at: path, form: form, pieceBytes: Self.pieceBytes, sink)
    }

    /// - Parameter pieceBytes: what is gathered before it is given away.
    func writeJSON(
        at path: TreePath, form: TreeJSON.Form, pieceBytes: Int,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        var isEmpty = true
        var pieces = JSONPieces(
            assembler: JSONAssembler(appendingTo: [], form: form), pieceBytes: pieceBytes,
            sink: { (piece: inout [UInt8]) throws(Status) in
                isEmpty = false
                try sink(&piece)
            })
        var walk = try SubtreeWalk(
            PathCode.place(path), in: snapshot, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
        try walk.run(&pieces)
        if isEmpty, pieces.assembler.text.isEmpty { pieces.assembler.appendNull() }
        if !pieces.assembler.text.isEmpty { try pieces.assembler.pour(sink) }
    }
}
