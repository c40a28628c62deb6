import HearthTree

/// Which locations the last commits have changed, for those who have worked something out on a snapshot beside the writer.
struct RecentTreeChanges {
    /// What is known of a location since a version.
    enum Since: Equatable {
        /// It is as it was.
        case untouched
        /// It was something else at least for a moment.
        case changed
        /// It may have changed: something above it was replaced, or too much has happened since.
        case unknown
    }

    private struct Entry {
        var version: Int64
        var path: TreePath
        /// Whether the location itself is known to have become another by this commit.
        var isCertain: Bool
    }

    /// Commits that are remembered.
    static let countMax = 4096
    /// Changes of one commit that are remembered each by itself.
    private static let changesMax = 32

    private var entries: [Entry] = []
    /// Nothing is known of commits up to this version.
    private var floor: Int64

    init(after version: Int64) { floor = version }

    /// - Parameter isCertain: whether the commit has made the tree another one; false when that was not looked at.
    mutating func note(_ commit: TreeCommit, isCertain: Bool) {
        if commit.isNoChange { return }
        let changes = commit.changes
        if changes.count > Self.changesMax {
            entries.append(Entry(version: commit.version, path: Self.base(of: changes), isCertain: false))
        } else {
            for change in changes {
                entries.append(
                    Entry(version: commit.version, path: change.place, isCertain: isCertain && changes.count == 1))
            }
        }
        if entries.count > 2 * Self.countMax { forget(entries.count - Self.countMax) }
    }

    private mutating func forget(_ count: Int) {
        floor = max(floor, entries[count - 1].version)
        entries.removeFirst(count)
    }

    /// What was noted of commits after a version has not happened.
    mutating func discard(after version: Int64) {
        while let last = entries.last, last.version > version { entries.removeLast() }
    }

    private static func base(of changes: [TreeChange]) -> TreePath {
        var base = changes[0].place
        for change in changes {
            while !base.contains(change.place) { base = base.parent ?? .root }
        }
        return base
    }

    /// Where commits since a version have changed something; nil when that isn't known any more.
    func paths(since version: Int64) -> [TreePath]? {
        if version < floor { return nil }
        return entries.reversed().prefix { $0.version > version }.map(\.path)
    }

    func since(_ version: Int64, at path: TreePath) -> Since {
        var found = version < floor ? Since.unknown : .untouched
        for entry in entries.reversed() {
            if entry.version <= version { break }
            if path.contains(entry.path) {
                if entry.isCertain { return .changed }
                found = .unknown
            } else if entry.path.contains(path) {
                found = .unknown
            }
        }
        return found
    }
}

/// Hashes of large places as they were worked out, as long as nothing has changed there.
struct KeptTreeHashes {
    private var hashes: [TreePath: (hash: String, version: Int64)] = [:]

    static let countMax = 256

    mutating func keep(_ hash: String, of path: TreePath, at version: Int64) {
        if hashes.count >= Self.countMax, hashes[path] == nil, let any = hashes.keys.first { hashes[any] = nil }
        hashes[path] = (hash, version)
    }

    /// - Parameter version: of the tree that is asked for, which is not before what has been forgotten; nil for the present.
    /// - Returns: nil when it is not known.
    mutating func hash(of path: TreePath, at version: Int64? = nil, _ changes: RecentTreeChanges) -> String? {
        guard let kept = hashes[path] else { return nil }
        if let version, version < kept.version { return nil }
        if changes.since(kept.version, at: path) == .untouched { return kept.hash }
        hashes[path] = nil
        return nil
    }
}
