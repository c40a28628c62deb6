import HearthEngine
import HearthModel
import HearthTree

/// What recorders of commits read.
extension TreeView {
    /// The store as the view shows it, for records that a `TreeRecorder` has put. Only valid while the view is.
    package var records: any Snapshot { snapshot }

    /// The data at a location.
    /// - Parameter sizeBytesMax: of its stored records, each of which counts some bytes more than it has.
    /// - Throws: RESOURCE_EXHAUSTED when it is more.
    package func node(at path: TreePath, sizeBytesMax: Int) throws(Status) -> Node {
        var assembler = NodeAssembler()
        var walk = try SubtreeWalk(PathCode.location(path), in: snapshot, sizeBytesMax: sizeBytesMax, check: check)
        try walk.run(&assembler)
        return assembler.result
    }
}
