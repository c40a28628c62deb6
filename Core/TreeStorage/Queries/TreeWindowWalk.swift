import HearthModel
import HearthTree

/// Windows of queries without their nodes: only the keys and one record at a time are in memory.
extension TreeView {
    /// Writes the JSON of a node with the children that match a query, `null` when there are none.
    /// - Parameter sink: takes a piece, and empties it. An error that it throws ends the walk.
    /// - Throws: RESOURCE_EXHAUSTED when it is more than `Limits.treeReadSizeBytesMax`.
    package func writeJSON(
        of query: TreeQuery, at path: TreePath, form: TreeJSON.Form,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        try writeJSON(
            of: query, at: path, form: form, pieceBytes: Self.pieceBytes, undecidedBytesMax: Self.undecidedBytesMax,
            sink)
    }

    func writeJSON(
        of query: TreeQuery, at path: TreePath, form: TreeJSON.Form, pieceBytes: Int, undecidedBytesMax: Int,
        _ sink: @escaping (inout [UInt8]) throws(Status) -> Void
    ) throws(Status) {
        let window = try windowKeys(query, path)
        var pieces = JSONPieces(
            form: form, pieceBytes: pieceBytes, undecidedBytesMax: undecidedBytesMax,
            isArray: { keys throws(Status) in
                if !keys.isEmpty { return try self.isArray(at: TreePath(keys: path.keys + keys)) }
                guard let last = window.last?.arrayIndex, last < 2 * window.count else { return false }
                return window.allSatisfy { $0.arrayIndex != nil }
            }, sink)
        if try !walk(window, path, &pieces, sizeBytesMax: Limits.treeReadSizeBytesMax) {
            pieces.assembler.appendNull()
        }
        if !pieces.assembler.string.isEmpty { try pieces.assembler.pour(sink) }
    }

    /// The hash of a node with the children that match a query; "" when there are none.
    /// - Throws: RESOURCE_EXHAUSTED when that is more than `Limits.treeReadSizeBytesMax`.
    package func hash(of query: TreeQuery, at path: TreePath) throws(Status) -> String {
        var builder = NodeHashBuilder()
        _ = try walk(query, path, &builder)
        return builder.hash
    }

    /// A node with all data of a location, or with the children that match a query; nil when its records have more
    /// bytes than `sizeBytesMax`.
    package func node(of query: TreeQuery?, at path: TreePath, sizeBytesMax: Int) throws(Status) -> Node? {
        var assembler = NodeAssembler()
        do throws(Status) {
            if let query {
                _ = try walk(query, path, &assembler, sizeBytesMax: sizeBytesMax)
            } else {
                var walk = try SubtreeWalk(
                    PathCode.location(path), in: snapshot, sizeBytesMax: sizeBytesMax, check: check)
                try walk.run(&assembler)
            }
        } catch {
            if error == SubtreeWalk.tooLarge { return nil }
            throw error
        }
        return assembler.result
    }

    /// - Returns: false when there are no children; the visitor then receives no event.
    private func walk(
        _ query: TreeQuery, _ path: TreePath, _ visitor: inout some SubtreeVisitor,
        sizeBytesMax: Int = Limits.treeReadSizeBytesMax
    ) throws(Status) -> Bool {
        try walk(try windowKeys(query, path), path, &visitor, sizeBytesMax: sizeBytesMax)
    }

    private func windowKeys(_ query: TreeQuery, _ path: TreePath) throws(Status) -> [TreeKey] {
        try keys(of: query, at: path).children.map(\.key).sorted()
    }

    private func walk(
        _ keys: [TreeKey], _ path: TreePath, _ visitor: inout some SubtreeVisitor, sizeBytesMax: Int
    ) throws(Status) -> Bool {
        if keys.isEmpty { return false }
        let location = PathCode.location(path)
        var left = sizeBytesMax
        try visitor.open(nil, priority: nil)
        for key in keys {
            var childLocation = location
            PathCode.append(key, to: &childLocation)
            var walk = try SubtreeWalk(childLocation, as: key, in: snapshot, sizeBytesMax: left, check: check)
            try walk.run(&visitor)
            left -= walk.sizeBytes
        }
        try visitor.close()
        return true
    }
}
