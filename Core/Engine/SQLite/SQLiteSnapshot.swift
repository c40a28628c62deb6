import HearthEngine

/// A lease of a pooled reader.
final class SQLiteSnapshot: SQLiteView, Snapshot {
    private let pool: ReaderPool
    private var use: SnapshotUse
    private var isClosed = false

    init(_ connection: Connection, lease: Int, pool: ReaderPool, _ use: SnapshotUse) {
        self.pool = pool
        self.use = use
        super.init(connection, lease: lease)
    }

    deinit { close() }

    func becomeLong() {
        if isClosed || use == .long { return }
        use = .long
        pool.becameLong()
    }

    func revoke() -> Bool { pool.revoke(connection, lease: lease) }

    func close() {
        if isClosed { return }
        isClosed = true
        pool.takeBack(connection, lease: lease, use)
    }
}
