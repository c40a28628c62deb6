import Foundation
import HearthModel
import HearthTree

/// Writes. Observers receive them at once, before the server has them; when the server rejects a write, observers
/// receive the data without it.
///
/// Offline, writes wait in their order and are sent when the client is online again. With persistence they are stored
/// on disk when the call returns, and the next run sends those without an answer; their completions are not called in
/// that run. A write of more than 16 MiB is not sent and fails with `too_big`. Writes below `.info` end
/// the program.
///
/// Completions run once, in the order of the server's answers, which is that of the writes.
extension DatabaseReference {
    /// Replaces the data at the location, including its priority. It ends this program's transactions at, above and
    /// below the location: one that was sent is not repeated if the server does not accept it, the others fail with
    /// `set`.
    /// - Parameter value: the new data: a string of at most 10 MiB, a finite number, a Boolean, a value of
    ///   `ServerValue`, or a dictionary with string keys or an array of these; nil and `NSNull` delete. In a dictionary
    ///   `.priority` is the priority, and `.value` the value beside it. Keys have 1 to 768 bytes and none of `.` `$`
    ///   `#` `[` `]` `/` and control characters; a path has at most 32 keys and 768 bytes. Anything else ends the
    ///   program.
    public func setValue(_ value: Any?) {
        run(nil) { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    /// Replaces the data at the location, including its priority.
    /// - Parameters:
    ///   - value: the new data, as for `setValue(_:)`.
    ///   - block: runs on `callbackQueue` when the server has answered, offline only after the client is online again.
    ///     It receives nil or the error, and this reference.
    public func setValue(_ value: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    /// Replaces the data at the location, including its priority, and waits for the server.
    /// - Parameter value: the new data, as for `setValue(_:)`.
    /// - Returns: this reference, after the server has made the write. Offline it waits until the client is online
    ///   again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a write that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func setValue(_ value: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    /// Replaces the data at the location and its priority.
    /// - Parameters:
    ///   - value: the new data, as for `setValue(_:)`.
    ///   - priority: the priority, as for `setPriority(_:)`. It replaces a `.priority` in the value.
    public func setValue(_ value: Any?, andPriority priority: Any?) {
        run(nil) { (path) throws(Status) in .set(try Change.set(value, priority: priority, at: path, "setValue")) }
    }

    /// Replaces the data at the location and its priority.
    /// - Parameters:
    ///   - value: the new data, as for `setValue(_:)`.
    ///   - priority: the priority, as for `setPriority(_:)`. It replaces a `.priority` in the value.
    ///   - block: runs on `callbackQueue` when the server has answered, offline only after the client is online again.
    ///     It receives nil or the error, and this reference.
    public func setValue(_ value: Any?, andPriority priority: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(value, priority: priority, at: path, "setValue")) }
    }

    /// Replaces the data at the location and its priority, and waits for the server.
    /// - Parameters:
    ///   - value: the new data, as for `setValue(_:)`.
    ///   - priority: the priority, as for `setPriority(_:)`. It replaces a `.priority` in the value.
    /// - Returns: this reference, after the server has made the write. Offline it waits until the client is online
    ///   again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a write that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func setValue(_ value: Any?, andPriority priority: Any?) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .set(try Change.set(value, priority: priority, at: path, "setValue"))
        }
    }

    /// Replaces the priority of the location and leaves its data unchanged. Without data there it has no effect at the
    /// server.
    /// - Parameter priority: a finite number, a string or `ServerValue.timestamp()`; nil and `NSNull` for none.
    ///   Anything else ends the program.
    public func setPriority(_ priority: Any?) {
        run(nil) { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    /// Replaces the priority of the location and leaves its data unchanged.
    /// - Parameters:
    ///   - priority: the priority, as for `setPriority(_:)`.
    ///   - block: runs on `callbackQueue` when the server has answered, offline only after the client is online again.
    ///     It receives nil or the error, and this reference.
    public func setPriority(_ priority: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    /// Replaces the priority of the location, leaves its data unchanged, and waits for the server.
    /// - Parameter priority: the priority, as for `setPriority(_:)`.
    /// - Returns: this reference, after the server has made the write. Offline it waits until the client is online
    ///   again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a write that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func setPriority(_ priority: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    /// Deletes the data at the location and below; the same as `setValue(nil)`.
    public func removeValue() {
        run(nil) { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    /// Deletes the data at the location and below.
    /// - Parameter block: runs on `callbackQueue` when the server has answered, offline only after the client is online
    ///   again. It receives nil or the error, and this reference.
    public func removeValue(completionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    /// Deletes the data at the location and below, and waits for the server.
    /// - Returns: this reference, after the server has made the write. Offline it waits until the client is online
    ///   again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a write that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func removeValue() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    /// Replaces the data at several paths below the location, all or none of them, and leaves other data unchanged.
    /// Without any path it does nothing and succeeds at once, also offline.
    /// - Parameter values: the new values by key or path below the location, as for `setValue(_:)`; a path may end in
    ///   `/.priority`. No path may be an ancestor of another, and none may be empty: otherwise the program ends.
    public func updateChildValues(_ values: [AnyHashable: Any]) {
        run(nil) { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }

    /// Replaces the data at several paths below the location, all or none of them, and leaves other data unchanged.
    /// - Parameters:
    ///   - values: the new values by key or path, as for `updateChildValues(_:)`.
    ///   - block: runs on `callbackQueue` when the server has answered, offline only after the client is online again.
    ///     It receives nil or the error, and this reference.
    public func updateChildValues(_ values: [AnyHashable: Any], withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }

    /// Replaces the data at several paths below the location, all or none of them, leaves other data unchanged, and
    /// waits for the server.
    /// - Parameter values: the new values by key or path, as for `updateChildValues(_:)`.
    /// - Returns: this reference, after the server has made the write. Offline it waits until the client is online
    ///   again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a write that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func updateChildValues(_ values: [AnyHashable: Any]) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }
}
