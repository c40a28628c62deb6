import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// Snapshots by pooled connections.
struct ReaderPoolTests {
    @Test func snapshotsBeyondTheBoundFail() throws {
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

    @Test func longReadsDoNotTakeTheReadersOfShortOnes() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let half = SQLiteStoreOptions().longReadersMax / 2
        var long = try (0..<half).map { _ in try store.snapshot(.long) }
        // A short one that becomes long frees its slot.
        for _ in 0..<half {
            let snapshot = try store.snapshot()
            snapshot.becomeLong()
            snapshot.becomeLong()
            long.append(snapshot)
        }
        #expect(store.statistics.longSnapshots == 2 * half && store.statistics.shortSnapshots == 0)
        #expect(throws: Status.self) { try store.snapshot(.long) }
        let short = try (0..<64).map { _ in try store.snapshot() }
        for snapshot in long + short { #expect(try snapshot.get(.meta, [1]) == [1]) }
        for snapshot in long + short { snapshot.close() }
        #expect(store.statistics.longSnapshots == 0 && store.statistics.shortSnapshots == 0)
    }

    @Test func revokedAndClosedSnapshotsAreUncounted() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        let open = [try store.snapshot(.long), try store.snapshot()]
        store.close()
        for snapshot in open { snapshot.close() }
        #expect(store.statistics.longSnapshots == 0 && store.statistics.shortSnapshots == 0)
        #expect(throws: Status.self) { try store.snapshot(.long) }
        #expect(store.statistics.longSnapshots == 0)
    }

    @Test func readersOfAllDatabasesShareOneBudget() throws {
        let folder = TemporaryFolder()
        let memory = ReaderMemory(bytesMax: 16 << 20, readersMax: 48, readersIdleMax: 40)
        var options = SQLiteStoreOptions()
        options.readerMemory = memory
        let stores = try (0..<4).map { try SQLiteStore(path: folder.path + "/\($0).sqlite", options: options) }
        #expect(memory.pagesPerReader * FileFormat.pageSizeBytes == 8 << 20)
        var open: [any Snapshot] = []
        for round in 0..<12 {
            for store in stores { open.append(try store.snapshot(round.isMultiple(of: 2) ? .short : .long)) }
            #expect(memory.pagesPerReader * FileFormat.pageSizeBytes * memory.readerCount <= 16 << 20)
        }
        // Those that were opened first had more, and have returned it.
        for snapshot in open {
            let connection = try #require(snapshot as? SQLiteSnapshot).connection
            #expect(connection.cachePagesNow == memory.pagesPerReader)
        }
        #expect(memory.readerCount == 48)
        #expect(throws: Status.resourceExhausted("Too many reads at a time in all databases.")) {
            try stores[0].snapshot()
        }
        // Idle ones are closed for others.
        for snapshot in open { snapshot.close() }
        let more = try (0..<20).map { _ in try stores[3].snapshot() }
        #expect(memory.readerCount <= 48)
        for snapshot in more { snapshot.close() }
        for store in stores { store.close() }
        #expect(memory.readerCount == 0 && memory.pagesPerReader * FileFormat.pageSizeBytes == 8 << 20)
    }

    /// As another database's reads close idle readers of this one.
    @Test func readersAreOpenedWhileOthersAreClosed() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let pool = ReaderPool(path: folder.path + "/a.sqlite", options: SQLiteStoreOptions(), counters: store.counters)
        let failures = Mutex<[Status]>([])
        let isOver = Atomic(false)
        let threads = (0..<2).map { _ in
            NamedThread.start("reader") {
                for _ in 0..<5000 {
                    do throws(Status) {
                        let snapshot = try pool.snapshot(.short)
                        if try snapshot.get(.meta, [1]) != [1] { throw Status(.dataLoss, "A value is missing.") }
                        snapshot.close()
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                }
            }
        }
        let closer = NamedThread.start("closer") {
            while !isOver.load(ordering: .relaxed) { pool.closeIdle(keeping: 0) }
        }
        for thread in threads { thread?.join() }
        isOver.store(true, ordering: .relaxed)
        closer?.join()
        #expect(failures.withLock { $0 } == [])
        pool.close(because: .unavailable("The test is over."))
        store.close()
        #expect(folder.size("a.sqlite-wal") == nil)
    }

    @Test func writersOfAllDatabasesShareOneBudget() throws {
        let folder = TemporaryFolder()
        let cache = CacheBudget(bytesMax: 8 << 20, eachBytesMax: 4 << 20, eachBytesMin: 64 << 10)
        var options = SQLiteStoreOptions()
        options.writerCache = cache
        var stores: [SQLiteStore] = []
        for number in 0..<20 {
            let store = try SQLiteStore(path: folder.path + "/\(number).sqlite", options: options)
            stores.append(store)
            // Another one is opened amid a transaction, too.
            try store.write { transaction throws(Status) in
                for index in 0..<50 { try transaction.put(.entries, key(index), Array(repeating: 1, count: 3000)) }
                if number > 0 {
                    try stores[number - 1].write { other throws(Status) in try other.put(.entries, key(1), [1]) }
                }
                try transaction.put(.entries, key(50), [2])
            }
            #expect(cache.count == number + 1)
            #expect(cache.pagesEach * FileFormat.pageSizeBytes * cache.count <= 8 << 20)
        }
        for store in stores { try store.write { other throws(Status) in try other.put(.entries, key(2), [1]) } }
        for holder in cache.all { #expect(holder.cachePagesNow == cache.pagesEach) }
        for store in stores { #expect(try store.damage(max: 3) == []) }
        for store in stores { store.close() }
        #expect(cache.count == 0 && cache.pagesEach * FileFormat.pageSizeBytes == 4 << 20)
    }

    @Test func cachesAreSmallWhileMemoryIsTight() throws {
        let folder = TemporaryFolder()
        let cache = CacheBudget(bytesMax: 8 << 20, eachBytesMax: 4 << 20, eachBytesMin: 512 << 10)
        var options = SQLiteStoreOptions()
        options.writerCache = cache
        let stores = try (0..<4).map { try SQLiteStore(path: folder.path + "/\($0).sqlite", options: options) }
        cache.setTight(true)
        #expect(cache.pagesEach * FileFormat.pageSizeBytes == 256 << 10)
        // One that is busy meanwhile shrinks when it is no longer busy.
        try stores[0].write { transaction throws(Status) in
            for index in 0..<500 { try transaction.put(.entries, key(index), Array(repeating: 1, count: 3000)) }
            cache.setTight(false)
            #expect(cache.pagesEach * FileFormat.pageSizeBytes == 2 << 20)
            cache.setTight(true)
        }
        for store in stores { try store.write { other throws(Status) in try other.put(.entries, key(1), [1]) } }
        for holder in cache.all { #expect(holder.cachePagesNow == cache.pagesEach) }
        #expect(cache.pagesEach * FileFormat.pageSizeBytes * cache.count <= 1 << 20)
        cache.setTight(false)
        for store in stores { try store.write { other throws(Status) in try other.put(.entries, key(1), [2]) } }
        for holder in cache.all { #expect(holder.cachePagesNow * FileFormat.pageSizeBytes == 2 << 20) }
        for store in stores {
            #expect(try store.damage(max: 3) == [])
            store.close()
        }
    }

    /// A connection is for one thread at a time: opening a database does not touch connections that others write with.
    @Test func cachesShrinkWhileOthersCommit() throws {
        let folder = TemporaryFolder()
        let cache = CacheBudget(bytesMax: 1 << 20, eachBytesMax: 1 << 20, eachBytesMin: 64 << 10)
        var options = SQLiteStoreOptions()
        options.writerCache = cache
        let stores = try (0..<2).map { try SQLiteStore(path: folder.path + "/\($0).sqlite", options: options) }
        let failures = Mutex<[Status]>([])
        let isOver = Atomic(false)
        let threads = stores.map { store in
            NamedThread.start("writer") {
                var number = 0
                while !isOver.load(ordering: .relaxed) {
                    do throws(Status) {
                        try store.write { transaction throws(Status) in
                            try transaction.put(
                                .entries, key(number % 500), Array(repeating: UInt8(number % 251), count: 3000))
                        }
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                    number += 1
                }
            }
        }
        // Each time the others' limit falls from a half to a fourth, and rises.
        var round = 0
        while round < 200 || stores.contains(where: { $0.counters.commits.load(ordering: .relaxed) < 2000 }) {
            let store = try SQLiteStore(path: folder.path + "/other\(round % 4).sqlite", options: options)
            store.close()
            round += 1
        }
        isOver.store(true, ordering: .relaxed)
        for thread in threads { thread?.join() }
        #expect(failures.withLock { $0 } == [])
        for store in stores {
            #expect(try store.damage(max: 3) == [])
            store.close()
        }
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

    @Test func aClosedSnapshotFailsItsOwnCursorsOnly() throws {
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

    @Test func anEscapedTransactionFails() throws {
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
