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
