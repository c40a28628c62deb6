import HearthTree

/// The computed hashes of large locations, while nothing has changed there.
struct KeptTreeHashes {
    private var hashes: [TreePath: (hash: String, version: Int64)] = [:]

    static let countMax = 256

    mutating func keep(_ hash: String, of path: TreePath, at version: Int64) {
        if hashes.count >= Self.countMax, hashes[path] == nil, let any = hashes.keys.first { hashes[any] = nil }
        hashes[path] = (hash, version)
    }

    /// - Parameter version: of the tree in question, not older than the discarded records; nil for the present.
    /// - Returns: nil when it is not known.
    mutating func hash(of path: TreePath, at version: Int64? = nil, _ changes: RecentTreeChanges) -> String? {
        guard let kept = hashes[path] else { return nil }
        if let version, version < kept.version { return nil }
        if changes.since(kept.version, at: path) == .untouched { return kept.hash }
        hashes[path] = nil
        return nil
    }
}
