@testable import HearthConcurrency
import Dispatch
import Glibc
import HearthModel
import HearthSQLite
import HearthEngine
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

/// A folder that is removed with its content at deinitialization.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        // In memory where such a folder exists: thousands of commits would wait for a shared disk.
        let memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? memory
        var template = Array("\(parent)/hearth-tree-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder: \(String(cString: strerror(errno)))") }
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        for suffix in ["", "-wal", "-shm"] { remove(path + "/tree.sqlite" + suffix) }
        rmdir(path)
    }
}

/// A clock that only moves when it is set.
final class StoppedClock: Clock {
    private let microseconds: Mutex<Int64>

    init(_ microseconds: Int64 = 1_700_000_000_000_000) { self.microseconds = Mutex(microseconds) }

    func now() -> Timestamp { Timestamp(microseconds: microseconds.withLock { $0 }) }
    func monotonicNanoseconds() -> UInt64 { UInt64(microseconds.withLock { $0 }) * 1000 }
    func set(_ value: Int64) { microseconds.withLock { $0 = value } }
}

/// A value that one thread waits for from another.
final class Promise<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    func fulfil(_ value: Value) {
        self.value.withLock { $0 = value }
        semaphore.signal()
    }

    func wait() -> Value {
        semaphore.wait()
        guard let value = value.withLock({ $0 }) else { fatalError("waited twice") }
        return value
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
        submit(write) { promise.fulfil($0) }
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
        setIndexes(definitions) { promise.fulfil($0) }
        try promise.wait().get()
    }

    /// Waits until indexes are complete or deleted.
    func finishBuilding() {
        while isBuilding {
            let promise = Promise<Bool>()
            perform { _ in promise.fulfil(true) }
            _ = promise.wait()
        }
    }

    /// Waits until the background work of large writes is complete.
    func finishSettling() {
        while !isSettled {
            let promise = Promise<Bool>()
            perform { _ in promise.fulfil(true) }
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
