import Foundation
import HearthModel
import HearthTree

/// Writes. Observers receive them immediately. Completions run when the server has answered, in the order of the
/// writes.
extension DatabaseReference {
    /// Replaces the data at the location, including its priority; nil and `NSNull` delete it.
    public func setValue(_ value: Any?) {
        run(nil) { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    public func setValue(_ value: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    @discardableResult
    nonisolated(nonsending) public func setValue(_ value: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .set(try Change.set(value, at: path, "setValue")) }
    }

    public func setValue(_ value: Any?, andPriority priority: Any?) {
        run(nil) { (path) throws(Status) in .set(try Change.set(value, priority: priority, at: path, "setValue")) }
    }

    public func setValue(_ value: Any?, andPriority priority: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(value, priority: priority, at: path, "setValue")) }
    }

    @discardableResult
    nonisolated(nonsending) public func setValue(_ value: Any?, andPriority priority: Any?) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in
            .set(try Change.set(value, priority: priority, at: path, "setValue"))
        }
    }

    /// - Parameter priority: nil, a number or a string.
    public func setPriority(_ priority: Any?) {
        run(nil) { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    public func setPriority(_ priority: Any?, withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    @discardableResult
    nonisolated(nonsending) public func setPriority(_ priority: Any?) async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .priority(try Change.priority(priority, at: path, "setPriority")) }
    }

    public func removeValue() {
        run(nil) { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    public func removeValue(completionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    @discardableResult
    nonisolated(nonsending) public func removeValue() async throws -> DatabaseReference {
        try await running { (path) throws(Status) in .set(try Change.set(nil, at: path, "removeValue")) }
    }

    /// Replaces the data at several paths below the location, all or none of them, and leaves other data unchanged.
    /// - Parameter values: the values by key or path. No path may be an ancestor of another.
    public func updateChildValues(_ values: [AnyHashable: Any]) {
        run(nil) { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }

    public func updateChildValues(_ values: [AnyHashable: Any], withCompletionBlock block: @escaping Completion) {
        run(block) { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }

    @discardableResult
    nonisolated(nonsending) public func updateChildValues(_ values: [AnyHashable: Any]) async throws
        -> DatabaseReference
    {
        try await running { (path) throws(Status) in .update(try Change.update(values, at: path, "updateChildValues")) }
    }
}
