import Foundation
import HearthModel
import HearthTree

/// Writes that the server makes when the connection to this client ends, for any reason. After a reconnect they
/// must be requested again.
extension DatabaseReference {
    public func onDisconnectSetValue(_ value: Any?) {
        run(nil) { (path) throws(Status) in .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue")) }
    }

    public func onDisconnectSetValue(_ value: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue"))
        }
    }

    @discardableResult
    nonisolated(nonsending) public func onDisconnectSetValue(_ value: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in
            .onDisconnectSet(try Change.set(value, at: path, "onDisconnectSetValue"))
        }
    }

    public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any) {
        run(nil) { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    public func onDisconnectSetValue(
        _ value: Any?, andPriority priority: Any?, withCompletionBlock block: @escaping Completion
    ) {
        run(block) { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    @discardableResult
    nonisolated(nonsending) public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any?) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .onDisconnectSet(
                try Change.set(value, priority: priority, at: path, "onDisconnectSetValue"))
        }
    }

    public func onDisconnectRemoveValue() {
        run(nil) { (path) throws(Status) in .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue")) }
    }

    public func onDisconnectRemoveValue(completionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue"))
        }
    }

    @discardableResult
    nonisolated(nonsending) public func onDisconnectRemoveValue() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in
            .onDisconnectSet(try Change.set(nil, at: path, "onDisconnectRemoveValue"))
        }
    }

    public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
        run(nil) { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    public func onDisconnectUpdateChildValues(
        _ values: [AnyHashable: Any], withCompletionBlock block: @escaping Completion
    ) {
        run(block) { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    @discardableResult
    nonisolated(nonsending) public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .onDisconnectUpdate(try Change.update(values, at: path, "onDisconnectUpdateChildValues"))
        }
    }

    /// Cancels the onDisconnect operations at the location and below.
    public func cancelDisconnectOperations() {
        run(nil) { (path) throws(Status) in .onDisconnectCancel }
    }

    public func cancelDisconnectOperations(completionBlock block: Completion?) {
        run(block) { (path) throws(Status) in .onDisconnectCancel }
    }

    @discardableResult
    nonisolated(nonsending) public func cancelDisconnectOperations() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .onDisconnectCancel }
    }
}
