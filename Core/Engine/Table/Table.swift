import Synchronization

/// A few ordered maps in memory, for one writer and any number of readers: the tables of `MemoryStore` and
/// `LoggedStore`.
///
/// Each map is a B+tree of blocks of raw memory, which are changed by copying: a commit publishes a new version
/// (`TableVersion`), and every reader reads the one that it took, without a lock. It isn't made of Swift's arrays and
/// objects, because counting references to what a copied node holds took half of the writer's time.
///
/// `@unchecked Sendable`: all but `present` belongs to whoever holds `writer`, or the lock that its user has instead.
final class Table: @unchecked Sendable {
    let writer = Mutex<Void>(())
    private let published: Mutex<TableVersion>
    private let editor = TableEditor()
    private let blocks = TableBlocks()

    /// - Parameter trees: how many maps.
    init(trees: Int) {
        let roots = ContiguousArray<TableBlock?>(repeating: nil, count: trees)
        blocks.published(1, roots, retired: [], trees: [], madeCount: 0)
        published = Mutex(TableVersion(1, roots, blocks))
    }

    /// The version that the last commit has published.
    var present: TableVersion { published.withLock { $0 } }

    // MARK: Writing, under `writer`

    /// Begins a transaction, which is to be ended by `commit` or `rollBack`.
    func begin() -> (editor: TableEditor, roots: ContiguousArray<TableBlock?>) {
        let present = self.present
        editor.begin(version: present.number + 1)
        return (editor, present.roots)
    }

    /// - Returns: the new version.
    @discardableResult
    func commit(_ roots: ContiguousArray<TableBlock?>) -> TableVersion {
        let version = TableVersion(editor.version, roots, blocks)
        // Made ones, too: otherwise a large tree that was removed would be freed more slowly than the next one grows.
        let changed = editor.retired.count + editor.madeCount
        blocks.published(
            version.number, roots, retired: editor.retired, trees: editor.retiredTrees, madeCount: editor.madeCount)
        editor.committed()
        // The former version ends outside the lock, as ending may take the time of a wait.
        let former = published.withLock { present in
            defer { present = version }
            return present
        }
        withExtendedLifetime(former) {}
        blocks.freeSome(changed: changed)
        return version
    }

    func rollBack() { editor.rollBack() }

    /// Frees a part of what long snapshots have kept.
    /// - Returns: whether there is more.
    func freePart() -> Bool { blocks.freePart() }

    /// About how many bytes are kept for versions before the present one that somebody holds. Under `writer`.
    var keptBytes: Int {
        blocks.settle()
        return blocks.keptBytes
    }

    /// Blocks that are allocated.
    var blockCount: Int { blocks.count }
}
