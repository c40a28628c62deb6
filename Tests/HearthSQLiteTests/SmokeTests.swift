import HearthModel
import HearthStorage
import Testing

@testable import HearthSQLite

@Test func smoke() throws {
    let store = try SQLiteStore(path: "/tmp/sqb/smoke.sqlite")
    try store.write { transaction throws(Status) in
        try transaction.put(.documents, [1, 2], [3])
        try transaction.put(.entries, [], [])
    }
    let snapshot = try store.snapshot()
    #expect(try snapshot.get(.documents, [1, 2]) == [3])
    #expect(try snapshot.get(.entries, []) == [])
    let cursor = try snapshot.scan(.documents, KeyRange(lower: [], upper: nil), reverse: true, values: true)
    #expect(try cursor.next())
    #expect(cursor.key == [1, 2])
    snapshot.close()
    store.close()
}
