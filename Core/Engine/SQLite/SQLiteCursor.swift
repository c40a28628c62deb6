import CSQLite
import HearthModel
import HearthEngine

/// A walk by one prepared SELECT; seeking binds a new bound and restarts it.
final class SQLiteCursor: KeyCursor {
    /// Memory that each row uses again, unless someone holds it.
    private(set) var key: [UInt8] = []
    private(set) var value: [UInt8] = []

    private let connection: Connection
    private let lease: Int
    private let keyspace: Keyspace
    private let reverse: Bool
    private let values: Bool
    private let dropping: Int

    /// The rest of the range.
    private var lower: [UInt8]
    private var upper: [UInt8]?
    private var phase = Phase.moved
    private var scan: (statement: ScanStatement, use: Int)?

    private enum Phase {
        /// The next step must bind the range.
        case moved
        /// The statement is positioned at `key`.
        case positioned
        case ended
    }

    init(
        _ connection: Connection, lease: Int, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool,
        dropping: Int
    ) {
        self.dropping = dropping
        self.connection = connection
        self.lease = lease
        self.keyspace = keyspace
        self.reverse = reverse
        self.values = values
        lower = range.lower
        upper = range.upper
    }

    deinit { close() }

    func next() throws(Status) -> Bool {
        if phase == .ended { return false }
        try connection.enter(lease)
        defer { connection.leave() }
        if phase == .moved { try begin() }
        guard let scan, scan.statement.use == scan.use else { throw .internalError("The cursor is closed.") }
        let result = sqlite3_step(scan.statement.handle)
        if result == SQLITE_ROW {
            key.removeAll(keepingCapacity: true)
            key.append(contentsOf: connection.columnBytes(scan.statement.handle, 0).dropFirst(dropping))
            if values {
                value.removeAll(keepingCapacity: true)
                value.append(contentsOf: connection.columnBytes(scan.statement.handle, 1))
            }
            return true
        }
        phase = .ended
        if result != SQLITE_DONE { throw connection.fail(result, "cannot read") }
        release()
        return false
    }

    func seek(_ target: [UInt8]) throws(Status) {
        switch (phase, reverse) {
        case (.ended, _):
            return
        case (.positioned, false):
            if compare(target) <= 0 { return }
            lower = target
        case (.positioned, true):
            if compare(target) >= 0 { return }
            upper = target + [0]
        case (.moved, false):
            if UTF8Order.compare(target, lower) <= 0 { return }
            lower = target
        case (.moved, true):
            // The first key above `target` is `target` and a zero.
            let bound = target + [0]
            if let upper, UTF8Order.compare(bound, upper) >= 0 { return }
            upper = bound
        }
        phase = .moved
    }

    /// A key next to the one at which the statement is positioned.
    private func compare(_ target: [UInt8]) -> Int {
        dropping == 0 ? UTF8Order.compare(target, key) : UTF8Order.compare(Array(target.dropFirst(dropping)), key)
    }

    func close() {
        phase = .ended
        guard scan != nil else { return }
        connection.withLock { release() }
    }

    /// Binds the rest of the range.
    private func begin() throws(Status) {
        let shape = StatementShape(keyspace: keyspace, reverse: reverse, values: values, bounded: upper != nil)
        if let scan, scan.statement.shape.bounded == shape.bounded {
            sqlite3_reset(scan.statement.handle)
        } else {
            release()
            let statement = try connection.takeScan(shape)
            scan = (statement, statement.use)
        }
        guard let statement = scan?.statement.handle else { return }
        var result = connection.bindCopy(statement, 1, lower)
        if result == SQLITE_OK, let upper { result = connection.bindCopy(statement, 2, upper) }
        if result != SQLITE_OK { throw connection.fail(result, "cannot read") }
        phase = .positioned
    }

    private func release() {
        if let scan { connection.returnScan(scan.statement, use: scan.use) }
        scan = nil
    }
}
