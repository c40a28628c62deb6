import CSQLite
import Glibc
import HearthModel
import HearthDocuments
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// Commits that fail on the disk: none of their changes are visible, and the store continues.
///
/// Serialised, because the faults are injected into the system calls of the whole process, though they affect one
/// thread only.
@Suite(.serialized)
struct FaultTests {
    @Test func aFullDatabaseFailsACommitAndContinues() throws {
        let folder = TemporaryFolder()
        var options = SQLiteStoreOptions()
        options.pagesMax = 60
        let store = try SQLiteStore(path: folder.path + "/a.sqlite", options: options)
        try put(store, 1, bytes: 1000)
        let refusal = try #require(refusal { () throws(Status) in try put(store, 2, bytes: 400_000) })
        #expect(refusal.code == .unavailable)
        #expect(refusal.message.contains("No space left on device"))
        #expect(try content(store) == [key(1)])
        try put(store, 3, bytes: 1000)
        #expect(try content(store) == [key(1), key(3)])
    }

    @Test func aCaughtErrorStillFailsTheCommit() throws {
        let folder = TemporaryFolder()
        var options = SQLiteStoreOptions()
        options.pagesMax = 60
        let store = try SQLiteStore(path: folder.path + "/a.sqlite", options: options)
        let outcome = refusal { () throws(Status) in
            try store.write { transaction throws(Status) in
                try transaction.put(.documents, key(1), [1])
                let first = refusal { () throws(Status) in
                    try transaction.put(.documents, key(2), Array(repeating: 1, count: 400_000))
                }
                // SQLite may have rolled back; this must not become a commit of its own.
                let second = refusal { () throws(Status) in try transaction.put(.documents, key(3), [3]) }
                #expect(first?.code == .unavailable)
                #expect(second == first)
            }
        }
        #expect(outcome?.code == .unavailable)
        #expect(try content(store) == [])
        try put(store, 4, bytes: 10)
        #expect(try content(store) == [key(4)])
    }

    /// A small file system of its own; needs the right to mount.
    @Test func commitsFailOnAFullDiskUntilThereIsSpace() throws {
        let folder = TemporaryFolder()
        guard system("mount -t tmpfs -o size=2m tmpfs \(folder.path) 2>/dev/null") == 0 else { return }
        defer { system("umount -l \(folder.path)") }
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try put(store, 0, bytes: 1000)
        var stored = [key(0)]
        let blocker = folder.path + "/blocker"
        #expect(system("head -c 1200000 /dev/zero > \(blocker)") == 0)
        var refused = 0
        for number in 1..<40 {
            let outcome = refusal { () throws(Status) in try put(store, number, bytes: 60_000) }
            if let outcome {
                refused += 1
                #expect(outcome.code == .unavailable)
                #expect(outcome.message.contains("No space left on device"), "\(outcome)")
            } else {
                stored.append(key(number))
            }
            #expect(try content(store) == stored)
        }
        #expect(refused > 10)
        unlink(blocker)
        try put(store, 99, bytes: 60_000)
        stored.append(key(99))
        #expect(try content(store) == stored)
        store.close()
        let again = try SQLiteStore(path: folder.path + "/a.sqlite")
        #expect(try content(again) == stored)
        again.close()
    }

    @Test(arguments: [false, true])
    func aWriteThatFailsAnywhereLeavesTheStateBefore(staysBroken: Bool) throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try put(store, 0, bytes: 1000)
        var stored = [key(0)]
        var failures = 0
        for number in 1..<40 {
            FaultyWrites.plant(after: number % 8, count: staysBroken ? Int.max : 1, code: EIO, writesFirst: false)
            let outcome = refusal { () throws(Status) in try put(store, number, bytes: 600_000) }
            FaultyWrites.remove()
            if let outcome {
                failures += 1
                #expect(outcome.code == .unavailable)
                #expect(outcome.message.contains("Input/output error"), "\(outcome)")
            } else {
                stored.append(key(number))
            }
            #expect(try content(store) == stored)
            #expect(try afterCrash(folder) == stored)
        }
        #expect(failures > 5 && stored.count > 5)
    }

    /// The worst case: all of the commit is in the file when the failure is reported.
    @Test func aFailedCommitThatWasWrittenStaysInvisibleAfterACrash() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try put(store, 0, bytes: 1000)
        var stored = [key(0)]
        var failures = 0
        for number in 1..<40 {
            FaultyWrites.plant(after: number % 8, count: 1, code: EIO, writesFirst: true)
            let outcome = refusal { () throws(Status) in try put(store, number, bytes: 600_000) }
            FaultyWrites.remove()
            if outcome == nil { stored.append(key(number)) } else { failures += 1 }
            #expect(try content(store) == stored)
            #expect(try afterCrash(folder) == stored, "\(number)")
        }
        #expect(failures > 5 && stored.count > 5)
    }

    @Test func aTailThatCouldNotBeClearedIsClearedLater() throws {
        let folder = TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/a.sqlite")
        try put(store, 0, bytes: 1000)
        var late = 0
        for number in 1..<60 {
            FaultyWrites.plant(after: number - 1, count: Int.max, code: EIO, writesFirst: true)
            let outcome = refusal { () throws(Status) in try put(store, number, bytes: 20_000) }
            #expect(try content(store).contains(key(number)) == (outcome == nil))
            FaultyWrites.remove()
            if outcome == nil { break }
            if try afterCrash(folder).contains(key(number)) { late += 1 }
            store.maintain()
            #expect(try !afterCrash(folder).contains(key(number)))
        }
        // Otherwise the test doesn't test its subject.
        #expect(late > 0)
    }

    // MARK: Helpers

    private func put(_ store: SQLiteStore, _ number: Int, bytes: Int) throws(Status) {
        try store.write { transaction throws(Status) in
            try transaction.put(.documents, key(number), Array(repeating: UInt8(number), count: bytes))
        }
    }

    private func content(_ store: SQLiteStore) throws(Status) -> [[UInt8]] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(.documents, .all, reverse: false, values: true)
        return try rows(cursor).map(\.key)
    }

    /// The state for a process that starts after this one was killed.
    private func afterCrash(_ folder: TemporaryFolder) throws(Status) -> [[UInt8]] {
        for suffix in ["", "-wal"] { folder.copy("a.sqlite\(suffix)", to: folder.path + "/copy.sqlite\(suffix)") }
        let store = try SQLiteStore(path: folder.path + "/copy.sqlite")
        defer { store.close() }
        return try content(store)
    }

    private func refusal(_ body: () throws(Status) -> Void) -> Status? {
        do throws(Status) {
            try body()
            return nil
        } catch {
            return error
        }
    }
}

/// Makes SQLite's writes fail on the thread that injected the fault.
private enum FaultyWrites {
    private static let thread = Atomic<UInt>(0)
    private static let left = Atomic<Int>(0)
    private static let count = Atomic<Int>(0)
    private static let code = Atomic<Int32>(0)
    private static let writesFirst = Atomic(false)

    /// - Parameters:
    ///   - after: writes that succeed before.
    ///   - count: writes that fail then.
    ///   - writesFirst: whether the first of them is written all the same.
    static func plant(after: Int, count: Int, code: Int32, writesFirst: Bool) {
        _ = installed
        left.store(after, ordering: .relaxed)
        self.count.store(count, ordering: .relaxed)
        self.code.store(code, ordering: .relaxed)
        self.writesFirst.store(writesFirst, ordering: .relaxed)
        thread.store(UInt(pthread_self()), ordering: .releasing)
    }

    static func remove() { thread.store(0, ordering: .releasing) }

    private static let installed: Bool = {
        guard let vfs = sqlite3_vfs_find("unix-excl") else { return false }
        let write: @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int = { descriptor, bytes, size, offset in
            guard FaultyWrites.isDue() else { return pwrite(descriptor, bytes, size, offset) }
            if FaultyWrites.writesFirst.exchange(false, ordering: .relaxed) {
                _ = pwrite(descriptor, bytes, size, offset)
            }
            errno = FaultyWrites.code.load(ordering: .relaxed)
            return -1
        }
        let pointer = unsafeBitCast(write, to: sqlite3_syscall_ptr.self)
        for name in ["pwrite", "pwrite64"] where vfs.pointee.xGetSystemCall(vfs, name) != nil {
            _ = vfs.pointee.xSetSystemCall(vfs, name, pointer)
        }
        return true
    }()

    private static func isDue() -> Bool {
        guard thread.load(ordering: .acquiring) == UInt(pthread_self()) else { return false }
        if left.load(ordering: .relaxed) > 0 {
            left.subtract(1, ordering: .relaxed)
            return false
        }
        if count.load(ordering: .relaxed) == 0 { return false }
        count.subtract(1, ordering: .relaxed)
        return true
    }
}
