import Foundation
import HearthModel
import HearthTree

/// Writes that the server makes when the connection to this client ends, for any reason: `goOffline`, the end of the
/// program, or a network that is gone, which the server finds out with a delay.
///
/// The server makes each of them once. After a reconnect they must be requested again, best when `.info/connected`
/// becomes true. Those that the server did not acknowledge yet wait offline and are sent after the writes that wait;
/// they are never stored on disk. Observers see nothing until the connection ends; then they receive the acknowledged
/// operations at once, also offline.
///
/// A server limits how much one connection may request: Hearth takes 1,000 locations and 1 MiB. Locations below `.info`
/// end the program.
extension DatabaseReference {
    /// Requests that the server replaces the data at the location when the connection ends. It replaces earlier
    /// requests for the location and below.
    /// - Parameter value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the
    ///   server makes the write.
    public func onDisconnectSetValue(_ value: Any?) {
        run(nil) { (path) throws(Status) in .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue")) }
    }

    /// Requests that the server replaces the data at the location when the connection ends.
    /// - Parameters:
    ///   - value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the server makes
    ///     the write.
    ///   - block: runs on `callbackQueue` when the server has the request, offline only after the client is online
    ///     again. It receives nil or the error, and this reference.
    public func onDisconnectSetValue(_ value: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue"))
        }
    }

    /// Requests that the server replaces the data at the location when the connection ends, and waits for the server's
    /// acknowledgement.
    /// - Parameter value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the
    ///   server makes the write.
    /// - Returns: this reference, after the server has the request. Offline it waits until the client is online again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a request that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func onDisconnectSetValue(_ value: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in
            .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue"))
        }
    }

    /// Requests that the server replaces the data at the location and its priority when the connection ends.
    /// - Parameters:
    ///   - value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the server makes
    ///     the write.
    ///   - priority: the priority, as for `setPriority(_:)`.
    public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any) {
        run(nil) { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    /// Requests that the server replaces the data at the location and its priority when the connection ends.
    /// - Parameters:
    ///   - value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the server makes
    ///     the write.
    ///   - priority: the priority, as for `setPriority(_:)`.
    ///   - block: runs on `callbackQueue` when the server has the request, offline only after the client is online
    ///     again. It receives nil or the error, and this reference.
    public func onDisconnectSetValue(
        _ value: Any?, andPriority priority: Any?, withCompletionBlock block: @escaping Completion
    ) {
        run(block) { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    /// Requests that the server replaces the data at the location and its priority when the connection ends, and waits
    /// for the server's acknowledgement.
    /// - Parameters:
    ///   - value: the data to write, as for `setValue(_:)`. Values of `ServerValue` are computed when the server makes
    ///     the write.
    ///   - priority: the priority, as for `setPriority(_:)`.
    /// - Returns: this reference, after the server has the request. Offline it waits until the client is online again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a request that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any?) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    /// Requests that the server deletes the data at the location and below when the connection ends.
    public func onDisconnectRemoveValue() {
        run(nil) { (path) throws(Status) in .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue")) }
    }

    /// Requests that the server deletes the data at the location and below when the connection ends.
    /// - Parameter block: runs on `callbackQueue` when the server has the request, offline only after the client is
    ///   online again. It receives nil or the error, and this reference.
    public func onDisconnectRemoveValue(completionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue"))
        }
    }

    /// Requests that the server deletes the data at the location and below when the connection ends, and waits for the
    /// server's acknowledgement.
    /// - Returns: this reference, after the server has the request. Offline it waits until the client is online again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a request that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func onDisconnectRemoveValue() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in
            .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue"))
        }
    }

    /// Requests that the server replaces the data at several paths below the location when the connection ends, all or
    /// none of them. Without any path it does nothing and succeeds at once.
    /// - Parameter values: the new values by key or path, as for `updateChildValues(_:)`.
    public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
        run(nil) { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    /// Requests that the server replaces the data at several paths below the location when the connection ends, all or
    /// none of them.
    /// - Parameters:
    ///   - values: the new values by key or path, as for `updateChildValues(_:)`.
    ///   - block: runs on `callbackQueue` when the server has the request, offline only after the client is online
    ///     again. It receives nil or the error, and this reference.
    public func onDisconnectUpdateChildValues(
        _ values: [AnyHashable: Any], withCompletionBlock block: @escaping Completion
    ) {
        run(block) { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    /// Requests that the server replaces the data at several paths below the location when the connection ends, and
    /// waits for the server's acknowledgement.
    /// - Parameter values: the new values by key or path, as for `updateChildValues(_:)`.
    /// - Returns: this reference, after the server has the request. Offline it waits until the client is online again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task
    ///   is cancelled; a request that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    /// Cancels the onDisconnect operations at the location and below, which the server then does not make.
    public func cancelDisconnectOperations() {
        run(nil) { (path) throws(Status) in .onDisconnectCancel }
    }

    /// Cancels the onDisconnect operations at the location and below, which the server then does not make.
    /// - Parameter block: nil, or runs on `callbackQueue` when the server has the request, offline only after the
    ///   client is online again. It receives nil or the error, and this reference.
    public func cancelDisconnectOperations(completionBlock block: Completion?) {
        run(block) { (path) throws(Status) in .onDisconnectCancel }
    }

    /// Cancels the onDisconnect operations at the location and below, and waits for the server's acknowledgement.
    /// - Returns: this reference, after the server has the request. Offline it waits until the client is online again.
    /// - Throws: an `NSError` of the domain `com.firebase`: 2 when the app is deleted, 3 after
    ///   `purgeOutstandingWrites`, 9999 for other reasons (see `Database`). `CancellationError` when the task is
    ///   cancelled; a request that was begun continues.
    @discardableResult
    nonisolated(nonsending) public func cancelDisconnectOperations() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .onDisconnectCancel }
    }
}
