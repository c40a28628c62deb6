public import Foundation
import HearthModel
import HearthTree

/// The data of a location at one moment. It never changes, and may be used from any thread.
public class DataSnapshot: NSObject, @unchecked Sendable {
    // All state is constant.
    let node: Node
    private let path: TreePath
    private let database: Database?
    /// Determines the order of the children.
    private let query: TreeQuery

    init(_ node: Node, at path: TreePath, orderedBy query: TreeQuery = TreeQuery(), of database: Database) {
        self.node = node
        self.path = path
        self.query = query
        self.database = database
    }

    private init(_ node: Node, at path: TreePath, of database: Database?) {
        self.node = node
        self.path = path
        self.database = database
        query = TreeQuery()
    }

    /// Creates an empty snapshot without a location. `ref` then has no database and cannot be used.
    public override init() {
        node = .empty
        path = .root
        query = TreeQuery()
        database = nil
    }

    /// The last key of the location; empty at the database's root.
    public var key: String { path.last?.string ?? "" }

    /// The data: a `String`, an `NSNumber` for numbers and Booleans, a dictionary of type `[String: Any]`, or an array
    /// of type `[Any]`; `NSNull` where there is no data, never nil. Priorities are not in it.
    ///
    /// Children become an array if all keys are integers from zero up and at least half of the indexes up to the last
    /// have a child; the others are `NSNull`.
    ///
    /// Swift's `String` treats some keys as equal although their bytes differ. A dictionary has only one of these;
    /// `children` has all.
    public var value: Any? { ValueWriter.plain(node) }

    /// The priority: a `String` or an `NSNumber`; `NSNull` for none, never nil.
    public var priority: Any? { node.priority.map { ValueWriter.any($0) } ?? NSNull() }

    /// A reference to the location of the data.
    public var ref: DatabaseReference {
        guard let database else { return DatabaseReference() }
        return DatabaseReference(database: database, path: path)
    }

    /// The number of children; 0 for a value without children.
    public var childrenCount: UInt { UInt(node.childCount) }

    /// Enumerates the children as `DataSnapshot` objects, in the order of the query.
    public var children: NSEnumerator {
        ListEnumerator(
            query.orderedChildren(of: node).map { DataSnapshot($0.node, at: path.child($0.key), of: database) })
    }

    /// The data at a path below.
    /// - Parameter path: a key, or several joined by `/`. Invalid keys, and paths with more than 32 keys or 768 bytes,
    ///   end the program.
    /// - Returns: a snapshot of the location, whose `exists()` is false where there is no data.
    public func childSnapshot(forPath path: String) -> DataSnapshot {
        let below = location(path, "childSnapshot(forPath:)")
        return DataSnapshot(node.node(at: below), at: self.path + below, of: database)
    }

    /// Whether there is data at a path below.
    /// - Parameter path: a key, or several joined by `/`, as for `childSnapshot(forPath:)`.
    /// - Returns: true if there is data.
    public func hasChild(_ path: String) -> Bool { !node.node(at: location(path, "hasChild(_:)")).isEmpty }

    /// Whether there are children.
    /// - Returns: false for a value without children, and where there is no data.
    public func hasChildren() -> Bool { node.childCount > 0 }

    /// Whether there is data.
    /// - Returns: false where there is no data, where `value` is `NSNull`.
    public func exists() -> Bool { !node.isEmpty }

    /// The data with priorities, in the form that `setValue` takes.
    /// - Returns: as `value`, but never with arrays. A dictionary with a priority has it as `.priority`; a value with a
    ///   priority is a dictionary of `.value` and `.priority`.
    public func valueInExportFormat() -> Any? { ValueWriter.export(node) }

    private func location(_ path: String, _ call: String) -> TreePath {
        orTrap { () throws(Status) in try Paths.path(path, below: .root, call) }
    }

    public override var description: String { "Snap (\(key)) \(value ?? NSNull())" }
}
