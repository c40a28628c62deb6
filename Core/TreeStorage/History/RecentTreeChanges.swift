import HearthTree

/// The locations that the last commits have changed, for computations on a snapshot beside the writer.
struct RecentTreeChanges {
    /// The change of a location since a version.
    enum Since: Equatable {
        /// Unchanged.
        case untouched
        /// It had another value at least for a moment.
        case changed
        /// It may have changed: a location above it was replaced, or too many commits have followed.
        case unknown
    }

    private struct Entry {
        var version: Int64
        var path: TreePath
        /// Whether this commit is known to have changed the location itself.
        var isCertain: Bool
    }

    /// The number of commits that are stored.
    static let countMax = 4096
    /// The number of changes of one commit that are stored individually.
    private static let changesMax = 32

    private var entries: [Entry] = []
    /// Nothing is known of commits up to this version.
    private var floor: Int64

    init(after version: Int64) { floor = version }

    /// - Parameter isCertain: whether the commit has changed the tree; false when that was not checked.
    mutating func note(_ commit: TreeCommit, isCertain: Bool) {
        if commit.isNoChange { return }
        let changes = commit.changes
        if changes.count > Self.changesMax {
            entries.append(Entry(version: commit.version, path: Self.base(of: changes), isCertain: false))
        } else {
            for change in changes {
                entries.append(
                    Entry(version: commit.version, path: change.location, isCertain: isCertain && changes.count == 1))
            }
        }
        if entries.count > 2 * Self.countMax { forget(entries.count - Self.countMax) }
    }

    private mutating func forget(_ count: Int) {
        floor = max(floor, entries[count - 1].version)
        entries.removeFirst(count)
    }

    /// The recorded commits after a version have failed.
    mutating func discard(after version: Int64) {
        while let last = entries.last, last.version > version { entries.removeLast() }
    }

    private static func base(of changes: [TreeChange]) -> TreePath {
        var base = changes[0].location
        for change in changes {
            while !base.contains(change.location) { base = base.parent ?? .root }
        }
        return base
    }

    /// The locations that commits since a version have changed; nil when that isn't known any more.
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
