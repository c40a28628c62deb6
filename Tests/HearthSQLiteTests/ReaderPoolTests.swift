import HearthModel
import HearthStorage
import Testing

@testable import HearthSQLite

/// Snapshots by pooled connections.
struct ReaderPoolTests {
    @Test func snapshotsBeyondTheBoundAreRefused() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        for _ in 0..<2 {
            var open = try (0..<64).map { _ in try store.snapshot() }
            #expect(throws: Status.resourceExhausted("Too many reads at a time: 64 snapshots are open.")) {
                try store.snapshot()
            }
            for snapshot in open { #expect(try snapshot.get(.meta, [1]) == [1]) }
            open.removeLast().close()
            try store.snapshot().close()
            // The rest is closed by being dropped.
            open = []
        }
        try store.snapshot().close()
    }

    @Test func manySnapshotsShowTheirOwnStates() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite", options: .shortWAL)
        var open: [any Snapshot] = []
        for round in 0..<64 {
            try store.write { transaction throws(Status) in
                for number in 0..<20 { try transaction.put(.entries, key(number), key(round)) }
            }
            open.append(try store.snapshot())
        }
        for (round, snapshot) in open.enumerated() {
            let cursor = try snapshot.scan(.entries, .all, reverse: false, values: true)
            #expect(try rows(cursor).allSatisfy { $0.value == key(round) })
        }
    }

    @Test func aClosedSnapshotRefusesItsCursorsAndNobodyElses() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in
            for number in 0..<10 { try transaction.put(.entries, key(number), []) }
        }
        let first = try store.snapshot()
        let old = try first.scan(.entries, .all, reverse: false, values: false)
        #expect(try old.next())
        first.close()
        // Gets the same connection and the same statement.
        let second = try store.snapshot()
        let new = try second.scan(.entries, .all, reverse: false, values: false)
        #expect(try new.next())
        #expect(throws: Status.self) { try old.next() }
        #expect(throws: Status.self) { try first.get(.entries, key(1)) }
        old.close()
        first.close()
        #expect(try new.next() && new.key == key(1))
        #expect(try second.get(.entries, key(1)) == [])
    }

    @Test func aTransactionThatEscapesIsRefused() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        var escaped: (any StoreTransaction)?
        try store.write { transaction throws(Status) in
            try transaction.put(.meta, [2], [2])
            escaped = transaction
        }
        #expect(throws: Status.self) { try escaped?.put(.meta, [1], [1]) }
        try store.write { _ throws(Status) -> Void in
            #expect(throws: Status.self) { try escaped?.put(.meta, [1], [1]) }
        }
        #expect(try store.snapshot().get(.meta, [1]) == nil)
    }
}
