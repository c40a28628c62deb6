import HearthModel
import HearthCache
import HearthTree

/// The unanswered writes on disk. The next run makes them again.
struct DiskWrites {
    let database: CacheDatabase

    func save(_ write: PendingWrite) throws(Status) {
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
        try database.run(
            "INSERT INTO writes (id, path, is_merge, made_at, data) VALUES (?, ?, ?, ?, ?)", .integer(write.id),
            .string(write.path.string), .integer(write.isMerge ? 1 : 0), .integer(write.madeAtMilliseconds),
            .bytes(string))
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
        let path = TreePath(row.string(1))
        let isMerge = row.integer(2) != 0
        do {
            let changes =
                isMerge
                ? try TreeJSON.merge(row.bytes(4), at: path).changes
                : [TreeChange(path: path, node: try TreeJSON.node(row.bytes(4)))]
            return PendingWrite(
                id: row.integer(0), path: path, isMerge: isMerge, changes: changes, madeAtMilliseconds: row.integer(3))
        } catch {
            throw Status(
                .dataLoss, "The cache \(database.path) has a write that cannot be read and isn't sent: \(error)")
        }
    }
}
