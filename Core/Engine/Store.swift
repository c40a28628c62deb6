import HearthModel

/// The contract between Hearth and a storage engine: an ordered key-value store with snapshots.
///
/// Keys are ordered by their bytes. Code above this file does not know SQL, files or pages; code below it does not know
/// documents or queries.
/// Invariants:
///
/// - A `Snapshot` shows one state of all keyspaces, that of the moment when it was taken, whatever is written
///   meanwhile.
/// - `Store.write` applies all changes of its body or none; when it returns they are durable (as far as the engine
///   promises durability at all) and every later snapshot shows them.
/// - One writer at a time; readers neither wait for the writer nor block it.
package protocol Store: AnyObject, Sendable {
    /// A view of the present state. Costs microseconds; close it soon, because it keeps old pages alive.
    func snapshot() throws(Status) -> any Snapshot

    /// The same, with how long it will be held: long reads don't take the readers that are reserved for short ones.
    func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot

    /// Runs `body` on a view that sees its own changes, and commits them durably when it returns.
    ///
    /// When `body` throws, nothing is changed. When the commit itself fails (disk full, I/O error), UNAVAILABLE is
    /// thrown, none of its changes are visible, and the store continues to work; `Status.message` contains the engine's
    /// message.
    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result

    /// How many microseconds the next large write should wait because of the last write, a large one, when the engine can't
    /// keep up. Whoever asks makes the large writes wait, and no others, which then wait for what they write themselves;
    /// otherwise the next write waits.
    func takeDelay() -> Int

    /// Work that should not delay a commit: checkpoints, space. Called by the writer's thread when it is idle, and
    /// after groups when much work has accumulated.
    func maintain()

    /// Has a log of the engine's own emptied, if it has one: when it is damaged, what only it has can't be distinguished
    /// from what was never written. Doesn't wait.
    /// - Returns: whether it is empty now.
    func settle() -> Bool

    /// Defects that the engine finds in its own files, at most `max` sentences. Reads everything; for tools.
    func damage(max: Int) throws(Status) -> [String]

    /// What somebody who checks the store may want to know of it, though it is no defect.
    var notice: String? { get }

    /// The engine's file as it is now, for backups. Waits for a commit under way.
    /// - Throws: FAILED_PRECONDITION when the engine keeps no file; UNAVAILABLE when it can't be read.
    func image() throws(Status) -> any StoreImage

    /// The space that the data takes, for monitoring; nil when the store does not know.
    var sizeBytes: Int? { get }

    /// The store's counters and state, for monitoring.
    var statistics: StoreStatistics { get }

    /// Ends all work and frees the files. Snapshots that are still open fail afterwards.
    func close()

    /// The same; later uses of the store fail with `reason`.
    func close(because reason: Status)
}

/// How long a snapshot is held.
package enum SnapshotUse: Sendable {
    /// Closed within one tick of an event loop, before the thread runs other work.
    case short
    /// Held across ticks of a loop, or read by a worker. The caller must have a `LongRead`.
    case long
}

extension Store {
    package func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot { try snapshot() }
    package func close(because reason: Status) { close() }
    package func takeDelay() -> Int { 0 }
    package func settle() -> Bool { true }

    package func image() throws(Status) -> any StoreImage {
        throw .failedPrecondition("This store keeps no file.")
    }

    package var sizeBytes: Int? { nil }

    package var statistics: StoreStatistics { StoreStatistics() }

    package func damage(max: Int) throws(Status) -> [String] { [] }

    package var notice: String? { nil }
}

/// A consistent view of a store. Used by one thread at a time, but may be passed from one to another.
package protocol Snapshot: AnyObject {
    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]?

    /// Calls `body` with the value at a key, which is valid during the call only; false when there is none. For values
    /// that are taken apart: `get` copies the whole.
    func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool

    /// Walks a range upwards, or downwards when `reverse`.
    /// - Parameters:
    ///   - values: false when only keys are wanted; `KeyCursor.value` is empty then.
    ///   - dropping: how many bytes `KeyCursor.key` leaves out at the start; all keys of the range have the same there.
    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor

    /// The number of keys in a range; counting stops at `limit`.
    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int

    /// From here on the snapshot counts as `SnapshotUse.long`.
    func becomeLong()

    /// Takes a long snapshot away, on any thread: its next use fails with UNAVAILABLE. Its holder must still close it.
    /// - Returns: false when it is being used just now; the caller tries again.
    func revoke() -> Bool

    /// Frees the view and its cursors; calls after it are a programmer's error. A second `close` has no effect.
    func close()
}

extension Snapshot {
    package func becomeLong() {}
    package func revoke() -> Bool { true }

    package func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        guard let value = try get(keyspace, key) else { return false }
        let result = value.withUnsafeBytes { value in Result { () throws(Status) in try body(value) } }
        try result.get()
        return true
    }

    package func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool
    ) throws(Status) -> any KeyCursor {
        try scan(keyspace, range, reverse: reverse, values: values, dropping: 0)
    }
}

/// A position in a walk over a range.
package protocol KeyCursor: AnyObject {
    /// Moves to the next key; false at the end.
    func next() throws(Status) -> Bool
    /// The key at the present position, without the dropped bytes. Valid after `next` returned true.
    var key: [UInt8] { get }
    var value: [UInt8] { get }
    /// Calls `body` with the key and the value at the present position, which are valid during the call only. For rows
    /// that are taken apart: `key` and `value` copy the whole.
    func withRow(
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status)
    /// Moves so that the next call of `next` returns the first key of the walk that is not before `key` in the walk's
    /// direction (at or above it, at or below it when reverse). Never moves backwards in the walk.
    /// - Parameter key: whole, including the dropped bytes.
    func seek(_ key: [UInt8]) throws(Status)
    /// Frees the cursor early; closing the snapshot frees it as well.
    func close()
}

extension KeyCursor {
    package func withRow(
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) {
        let result = key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in Result { () throws(Status) in try body(key, value) } }
        }
        try result.get()
    }
}

/// The writer's view: sees its own writes.
package protocol StoreTransaction: Snapshot {
    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status)
    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status)
    /// The same with bytes that are valid during the call only. For stores that copy them anyway; others make arrays.
    func put(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status)
    func delete(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer) throws(Status)
    /// Deletes at most `limit` keys of a range, from its lower end; returns how many there were.
    @discardableResult
    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int
}

extension StoreTransaction {
    package func put(
        _ keyspace: Keyspace, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) throws(Status) {
        try put(keyspace, [UInt8](key), [UInt8](value))
    }

    package func delete(_ keyspace: Keyspace, _ key: UnsafeRawBufferPointer) throws(Status) {
        try delete(keyspace, [UInt8](key))
    }
}

/// Opens the stores of databases and lists the databases.
package protocol StoreProvider: Sendable {
    /// The store of a database, made when it does not exist.
    func open(_ database: DatabaseName) throws(Status) -> any Store
    /// Whether a database exists.
    func contains(_ database: DatabaseName) throws(Status) -> Bool
    /// The databases that exist, in no particular order.
    func databases() throws(Status) -> [DatabaseName]
    /// Deletes a database whose store is closed.
    func delete(_ database: DatabaseName) throws(Status)
    /// Has open stores report files that another program has removed; called now and then, on a thread that may wait for a disk.
    func checkFiles()
    /// Closes all stores and releases the lock that keeps other processes from the data, even if some objects still
    /// refer to it.
    func close()
}

extension StoreProvider {
    package func checkFiles() {}
    package func close() {}
}
