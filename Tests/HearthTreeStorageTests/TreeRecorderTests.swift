import HearthConcurrency
import HearthEngine
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// What a recorder of commits sees, and what becomes of the records that it puts.
@Suite struct TreeRecorderTests {
    struct Record: Sendable {
        var version: Int64
        var before: Node
        var changes: [TreeChange]
        var author: [UInt8]
    }

    /// Puts a record for each commit, under its version.
    final class Recorder: TreeRecorder {
        struct State {
            var records: [Record] = []
            /// Of the present transaction.
            var staged: [Record] = []
            var ends: [Bool] = []
        }

        let state = Mutex(State())

        static func key(_ version: Int64) -> [UInt8] { [UInt8(ascii: "q")] + TreeMeta.encode(version) }

        func record(
            _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
            in transaction: any StoreTransaction
        ) throws(Status) {
            try transaction.put(.meta, Self.key(version), [1])
            let record = Record(
                version: version, before: try view.node(at: .root), changes: changes, author: author())
            state.withLock { $0.staged.append(record) }
        }

        func ended(isDurable: Bool) {
            state.withLock { state in
                if isDurable { state.records += state.staged }
                state.staged = []
                state.ends.append(isDurable)
            }
        }

        var records: [Record] { state.withLock { $0.records } }
    }

    private func stored(_ store: any Store) throws -> [Int64] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(
            .meta, KeyRange(prefix: [UInt8(ascii: "q")]), reverse: false, values: false, dropping: 1)
        defer { cursor.close() }
        var versions: [Int64] = []
        while try cursor.next() { versions.append(Int64(cursor.key.reduce(0) { $0 << 8 | UInt64($1) })) }
        return versions
    }

    /// Small writes, writes in slices, and wide updates.
    @Test(arguments: [UInt64](1...6)) func eachCommitIsRecordedOnceWithTheTreeBeforeIt(seed: UInt64) throws {
        var options = seed % 2 == 0 ? TreeWriterOptions() : TreeWriterOptions.sliced()
        if seed % 3 == 0 { options.replacementLocationsMax = 1 }
        let store = MemoryStore()
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
        defer { database.close() }
        let recorder = Recorder()
        database.setRecorder(recorder)
        var trees = RandomTrees(seed)
        var expected: [(commit: TreeCommit, before: Node)] = []
        var present = Node.empty
        for number in 0..<120 {
            let author = [UInt8(number)]
            let write = TreeWrite(changes: trees.changes(), nowMilliseconds: 5, author: { author })
            let before = present
            guard case .committed(let commit) = database.begin(write).wait() else { continue }
            present = try database.read { try $0.node(at: .root) }
            if commit.changes.isEmpty { continue }
            expected.append((commit, before))
            let record = try #require(recorder.records.last)
            #expect(record.version == commit.version && record.before == before && record.author == author)
            #expect(record.changes == commit.changes)
            #expect(ChangeTree(record.changes).applied(to: before) == present, "seed \(seed), write \(number)")
        }
        #expect(recorder.records.map(\.version) == expected.map(\.commit.version))
        #expect(zip(recorder.records, recorder.records.dropFirst()).allSatisfy { $0.version < $1.version })
        #expect(try stored(store) == expected.map(\.commit.version))
    }

    @Test func whatIsNotMadeIsNotRecorded() throws {
        let database = try TreeDatabase(name: "test", store: MemoryStore(), clock: SystemClock())
        defer { database.close() }
        let recorder = Recorder()
        database.setRecorder(recorder)
        var write = TreeWrite(("a", 1))
        write.condition = TreeWrite.Condition(path: "a", hash: "another", reveals: true)
        guard case .stale = database.begin(write).wait() else { throw Status.aborted("not stale") }
        _ = database.begin(TreeWrite(("a/b/.priority", true))).wait()
        try database.write(
            TreeWrite(
                changes: [], nowMilliseconds: 0, journal: [JournalChange(session: "s", entry: "e", record: [1])]))
        write = TreeWrite(("a", 2))
        write.isRecorded = false
        try database.write(write)
        #expect(recorder.records.isEmpty)
        try database.write(TreeWrite(("a", 3)))
        #expect(recorder.records.map(\.before) == [tree("{\"a\":2}")])
        #expect(recorder.records.map(\.author) == [[]])
        database.setRecorder(nil)
        try database.write(TreeWrite(("a", 4)))
        #expect(recorder.records.count == 1)
    }

    /// The store fails at every operation of a group of writes.
    @Test(arguments: 0..<24) func recordsAreDurableExactlyWithTheirCommits(operation: Int) throws {
        let store = FaultyStore()
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        defer { database.close() }
        try database.write(TreeWrite(("a/b", 1)))
        let recorder = Recorder()
        database.setRecorder(recorder)
        store.hold()
        let empty = database.begin(TreeWrite(changes: [], nowMilliseconds: 0))
        store.waitForWriter()
        let writes = [TreeWrite(("a/b", 2)), TreeWrite(("c", 3)), TreeWrite(("a", 4))].map { database.begin($0) }
        let edited = Promise<Result<Void, Status>>()
        database.edit({ transaction throws(Status) in try transaction.put(.meta, [UInt8(ascii: "s")], [9]) }) {
            edited.give($0)
        }
        store.fail(at: operation)
        store.release()
        let isEmptyMade = if case .committed = empty.wait() { true } else { false }
        var versions: [Int64] = []
        for write in writes { if case .committed(let commit) = write.wait() { versions.append(commit.version) } }
        let isEdited = (try? edited.wait().get()) != nil
        store.fail(at: nil)
        #expect(try stored(store) == versions)
        #expect(recorder.records.map(\.version) == versions)
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        #expect(try snapshot.get(.meta, [UInt8(ascii: "s")]) == (isEdited ? [9] : nil))
        let hasFailed = !isEmptyMade || versions.count < 3 || !isEdited
        recorder.state.withLock { state in
            #expect(state.staged.isEmpty && state.ends.contains(false) == hasFailed)
        }
    }
}
