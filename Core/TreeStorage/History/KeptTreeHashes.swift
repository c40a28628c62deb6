import HearthModel
import HearthTree

/// The hashes of one value that clients may send.
struct TreeHashes: Sendable {
    /// `Node.hash`.
    var exact: String
    /// As Google's SDK for the web computes it, where it computes another one (`HashedNumbers.web`).
    var web: String?

    /// Whether a client that sent the condition has this value.
    func meet(_ condition: TreeWrite.Condition) -> Bool {
        if UTF8Order.equal(exact, condition.hash) { return true }
        return condition.isOfSDK && web.map { UTF8Order.equal($0, condition.hash) } ?? false
    }
}

/// The computed hashes of large locations, while nothing has changed there.
struct KeptTreeHashes {
    private var hashes: [TreePath: (hashes: TreeHashes, version: Int64)] = [:]

    static let countMax = 256

    mutating func keep(_ found: TreeHashes, of path: TreePath, at version: Int64) {
        if hashes.count >= Self.countMax, hashes[path] == nil, let any = hashes.keys.first { hashes[any] = nil }
        hashes[path] = (found, version)
    }

    /// - Parameter version: of the tree in question, not older than the discarded records; nil for the present.
    /// - Returns: nil when it is not known.
    mutating func hashes(
        of path: TreePath, at version: Int64? = nil, _ changes: RecentTreeChanges
    ) -> TreeHashes? {
        guard let kept = hashes[path] else { return nil }
        if let version, version < kept.version { return nil }
        if changes.since(kept.version, at: path) == .untouched { return kept.hashes }
        hashes[path] = nil
        return nil
    }
}
