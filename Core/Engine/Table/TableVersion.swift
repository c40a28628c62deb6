/// A published version of a table. Whoever holds it may read its trees; they don't change.
final class TableVersion: Sendable {
    let number: UInt64
    /// One root a tree.
    nonisolated(unsafe) let roots: ContiguousArray<TableBlock?>
    private let blocks: TableBlocks

    init(_ number: UInt64, _ roots: ContiguousArray<TableBlock?>, _ blocks: TableBlocks) {
        self.number = number
        self.roots = roots
        self.blocks = blocks
    }

    deinit { blocks.ended(number) }
}
