import HearthStorage

/// A lease of a pooled reader.
final class SQLiteSnapshot: SQLiteView, Snapshot {
    private let pool: ReaderPool
    private var isClosed = false

    init(_ connection: Connection, lease: Int, pool: ReaderPool) {
        self.pool = pool
        super.init(connection, lease: lease)
    }

    deinit { close() }

    func close() {
        if isClosed { return }
        isClosed = true
        pool.takeBack(connection, lease: lease)
    }
}
