import HearthTree

/// Determines whether client and server have the same data.
struct ListenHash: Equatable, Sendable {
    /// Empty without data.
    var simple: String
    /// Only for larger data: it lets the server send the differences instead of all data.
    var compound: CompoundListenHash?
}

extension ListenHash {
    /// - Parameter node: the client's data for a listen.
    init(of node: Node) {
        self.init(simple: node.hash, compound: nil)
        guard CompoundHash.isWorthwhile(for: node) else { return }
        let parts = CompoundHash(of: node)
        compound = CompoundListenHash(hashes: parts.hashes, paths: parts.paths)
    }
}

/// One more hash than paths; the last one is empty.
struct CompoundListenHash: Equatable, Sendable {
    var hashes: [String]
    var paths: [TreePath]
}

/// A range of a location's data that the server sends, relative to the listen's location.
typealias ListenRange = TreeRange

extension Node {
    /// Returns the node with several ranges replaced, one after another.
    func applying(_ ranges: [ListenRange]) -> Node { ranges.reduce(self) { $1.applied(to: $0) } }
}
