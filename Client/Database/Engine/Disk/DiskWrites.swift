import HearthModel
import HearthCache
import HearthTree

/// The unanswered writes on disk. The next run makes them again.
struct DiskWrites {
    let database: CacheDatabase

    func save(_ write: PendingWrite) throws(Status) {
        try database.run(
            "INSERT INTO writes (id, path, is_merge, made_at, data) VALUES (?, ?, ?, ?, ?)", .integer(write.id),
            .string(write.path.string), .integer(write.isMerge ? 1 : 0), .integer(write.madeAtMilliseconds),
            .bytes(Self.data(of: write)))
    }

    static func data(of write: PendingWrite) -> [UInt8] {
        var string: [UInt8] = []
        if write.isMerge {
            for change in write.changes {
                string.append(UInt8(ascii: string.isEmpty ? "{" : ","))
                TreeJSON.appendString(change.path.relative(to: write.path).string, to: &string)
                string.append(UInt8(ascii: ":"))
                TreeJSON.append(change.node, to: &string, form: .export)
            }
            string.append(UInt8(ascii: "}"))
        } else if let change = write.changes.first {
            TreeJSON.append(change.node, to: &string, form: .export)
        }
        return string
    }

    func remove(_ id: Int64) throws(Status) { try database.run("DELETE FROM writes WHERE id = ?", .integer(id)) }

    /// - Parameter unreadable: called with each row that cannot be decoded; this write is lost.
    func all(unreadable: (Status) -> Void) throws(Status) -> [PendingWrite] {
        var writes: [PendingWrite] = []
        try database.rows("SELECT id, path, is_merge, made_at, data FROM writes ORDER BY id") { row throws(Status) in
            do throws(Status) { writes.append(try write(row)) } catch { unreadable(error) }
            return true
        }
        return writes
    }

    func lastID() throws(Status) -> Int64 {
        try database.counter(try database.first("SELECT max(id) FROM writes") { $0.integer(0) } ?? 0)
    }

    private func write(_ row: CacheRow) throws(Status) -> PendingWrite {
        do throws(Status) {
            return try Self.write(
                id: row.integer(0), path: TreePath(row.string(1)), isMerge: row.integer(2) != 0,
                madeAtMilliseconds: row.integer(3), data: row.bytes(4))
        } catch {
            throw unreadable(error)
        }
    }

    func unreadable(_ error: Status) -> Status {
        Status(
            .dataLoss, "The cache \(database.path) has a write that cannot be read and isn't sent: \(error.message)")
    }

    static func write(
        id: Int64, path: TreePath, isMerge: Bool, madeAtMilliseconds: Int64, data: [UInt8]
    ) throws(Status) -> PendingWrite {
        let changes: [TreeChange]
        do {
            changes =
                isMerge
                ? try TreeJSON.merge(data, at: path).changes
                : [TreeChange(path: path, node: try TreeJSON.node(data))]
        } catch {
            throw Status(.dataLoss, "\(error)")
        }
        return PendingWrite(
            id: id, path: path, isMerge: isMerge, changes: changes, madeAtMilliseconds: madeAtMilliseconds)
    }

    // MARK: The journal

    /// The number of the last record of the journal whose write is here.
    func journalNumber() throws(Status) -> Int64 {
        try database.counter(try database.first("SELECT number FROM journal") { $0.integer(0) } ?? 0)
    }

    func setJournalNumber(_ number: Int64) throws(Status) {
        try database.run("UPDATE journal SET number = ?", .integer(number))
    }
}
