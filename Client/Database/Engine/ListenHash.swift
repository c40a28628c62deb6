import HearthTree

/// What tells whether client and server have the same data.
struct ListenHash: Equatable, Sendable {
    /// Empty for nothing.
    var simple: String
    /// Only of larger data: with it the server sends what differs instead of all.
    var compound: CompoundListenHash?
}

extension ListenHash {
    /// - Parameter node: what the client has of a listen's data.
    init(of node: Node) {
        self.init(simple: node.hash, compound: nil)
        guard CompoundHash.isWorthwhile(for: node) else { return }
        let parts = CompoundHash(of: node)
        compound = CompoundListenHash(hashes: parts.hashes, paths: parts.paths)
    }
}

/// One more hash than places; the last one is empty.
struct CompoundListenHash: Equatable, Sendable {
    var hashes: [String]
    var paths: [TreePath]
}

/// A part of a place's data that the server sends: relative to the listen's place.
typealias ListenRange = TreeRange

extension Node {
    /// Itself with ranges of it replaced, one after another.
    func applying(_ ranges: [ListenRange]) -> Node { ranges.reduce(self) { $1.applied(to: $0) } }
}
