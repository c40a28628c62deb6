@testable import HearthConcurrency
import Glibc
import HearthModel
import HearthSQLite
import HearthEngine
import HearthTestSupport
import HearthTree
import Synchronization

@testable import HearthTreeStorage

enum Engine: String, CaseIterable {
    case memory, sqlite
}

/// A store that remains open when its database is closed, so that another database can use it.
final class LastingStore: Store {
    private let folder: TemporaryFolder?
    private let inner: Mutex<any Store>

    init(_ engine: Engine) throws(Status) {
        switch engine {
        case .memory:
            folder = nil
            inner = Mutex(MemoryStore())
        case .sqlite:
            let folder = TemporaryFolder()
            self.folder = folder
            inner = Mutex(try SQLiteStore(path: folder.path + "/tree.sqlite"))
        }
    }

    deinit { inner.withLock { $0.close() } }

    private var store: any Store { inner.withLock { $0 } }

    func snapshot() throws(Status) -> any Snapshot { try store.snapshot() }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try store.write(body)
    }

    func maintain() { store.maintain() }

    /// Only a file can be opened again.
    func close() {
        guard let folder else { return }
        store.close()
        // Not `try!`: a test with a damaged file should report the error.
        do throws(Status) {
            let reopened = try SQLiteStore(path: folder.path + "/tree.sqlite")
            inner.withLock { $0 = reopened }
        } catch {
            fatalError("\(error)")
        }
    }
}

let testNow: Int64 = 1_700_000_000_000

extension TreeWrite {
    init(_ changes: (TreePath, Node)...) {
        self.init(changes: changes.map { TreeChange(path: $0.0, node: $0.1) }, nowMilliseconds: testNow)
    }
}

extension TreeDatabase {
    func begin(_ write: TreeWrite) -> Promise<TreeOutcome> {
        let promise = Promise<TreeOutcome>()
        submit(write) { promise.give($0) }
        return promise
    }

    @discardableResult
    func write(_ write: TreeWrite) throws -> TreeCommit {
        switch begin(write).wait() {
        case .committed(let commit): return commit
        case .stale: throw Status.aborted("stale")
        case .failed(let status): throw status
        }
    }

    func define(_ definitions: [TreeIndexDefinition]) throws {
        let promise = Promise<Result<Void, Status>>()
        setIndexes(definitions) { promise.give($0) }
        try promise.wait().get()
    }

    /// Waits until indexes are complete or deleted.
    func finishBuilding() {
        while isBuilding {
            let promise = Promise<Bool>()
            perform { _ in promise.give(true) }
            _ = promise.wait()
        }
    }

    /// Waits until the background work of large writes is complete.
    func finishSettling() {
        while !isSettled {
            let promise = Promise<Bool>()
            perform { _ in promise.give(true) }
            _ = promise.wait()
        }
    }

    func read<Value>(_ body: (TreeView) throws -> Value) throws -> Value {
        let view = try view()
        defer { view.close() }
        return try body(view)
    }
}

extension TreeDatabase {
    /// Runs a body on the writer's thread, between two slices of a wide update: the first one that it makes from now on.
    func whenMakingWideUpdate(_ body: @escaping @Sendable () -> Void) {
        perform { [self] _ in if isMakingWideUpdate { body() } else { whenMakingWideUpdate(body) } }
    }
}

/// Connections that write continuously. The answer of each write, on the writer's thread, submits the next one: so each
/// connection has a write in the queue at every moment, however busy the machine is.
final class ContinuousWrites: Sendable {
    private let database: TreeDatabase
    private let write: @Sendable (_ connection: UInt64, _ number: Int) -> TreeWrite
    private let isOver = Atomic(false)
    private let inFlight = Atomic(0)
    private let answered = Atomic(0)
    private let failed = Atomic(0)

    /// - Parameter write: gets the number of writes that were answered before.
    init(
        to database: TreeDatabase, connections: Range<UInt64>,
        _ write: @escaping @Sendable (_ connection: UInt64, _ number: Int) -> TreeWrite
    ) {
        self.database = database
        self.write = write
        for connection in connections { submit(connection) }
    }

    private func submit(_ connection: UInt64) {
        inFlight.add(1, ordering: .relaxed)
        let requester = Requester(account: 1, connection: connection, isAdministrator: false)
        database.submit(write(connection, answered.load(ordering: .relaxed)), for: requester) { [self] outcome in
            answered.add(1, ordering: .relaxed)
            if outcome.commit == nil { failed.add(1, ordering: .relaxed) }
            if !isOver.load(ordering: .relaxed) { submit(connection) }
            inFlight.subtract(1, ordering: .releasing)
        }
    }

    var failures: Int { failed.load(ordering: .relaxed) }

    /// Makes another write, and counts those that are answered meanwhile.
    func count(beside other: TreeWrite, of requester: Requester) -> (outcome: TreeOutcome, beside: Int) {
        let end = Promise<(TreeOutcome, Int)>()
        // On the writer's thread, so that nothing comes between what is counted and the other write.
        database.perform { [self] _ in
            let before = answered.load(ordering: .relaxed)
            database.submit(other, for: requester) { [self] outcome in
                end.give((outcome, answered.load(ordering: .relaxed) - before))
            }
        }
        return end.wait()
    }

    /// - Returns: the number of answered writes.
    func end() -> Int {
        isOver.store(true, ordering: .relaxed)
        while inFlight.load(ordering: .acquiring) > 0 { sched_yield() }
        return answered.load(ordering: .relaxed)
    }
}

extension TreeWriterOptions {
    /// Nearly every write is made in slices, of a few records each.
    static func sliced(nodes: Int = 3, records: Int = 2) -> TreeWriterOptions {
        var options = TreeWriterOptions()
        options.replacementNodesMin = nodes
        options.slices.recordsMax = records
        options.compareBytesMax = 60
        return options
    }
}

func tree(_ json: String) -> Node {
    do throws(TreeDataError) { return try TreeJSON.node(Array(json.utf8)) } catch { fatalError("\(error)") }
}

/// Everything in the keyspaces of the tree.
func contents(_ store: any Store) throws -> [[UInt8]: [UInt8]] {
    let snapshot = try store.snapshot()
    defer { snapshot.close() }
    var all: [[UInt8]: [UInt8]] = [:]
    for keyspace in [Keyspace.entries, .documents, .feed] {
        let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
        while try cursor.next() { all[[UInt8(keyspace.rawValue)] + cursor.key] = cursor.value }
    }
    return all
}

extension Node: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral,
    ExpressibleByBooleanLiteral
{
    package init(integerLiteral value: Int64) { self.init(.integer(value)) }
    package init(stringLiteral value: String) { self.init(.string(value)) }
    package init(booleanLiteral value: Bool) { self.init(.bool(value)) }
}
