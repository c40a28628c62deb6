public import Foundation
import HearthModel
import HearthTree

/// The data of a location at one moment. It never changes.
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

    /// Creates an empty snapshot without a location. It has no use.
    public override init() {
        node = .empty
        path = .root
        query = TreeQuery()
        database = nil
    }

    /// The last key of the location; empty at the database's root.
    public var key: String { path.last?.string ?? "" }

    /// Strings, `NSNumber` for numbers and Booleans, dictionaries, arrays where the keys count from zero, with
    /// `NSNull` at indexes without a child; `NSNull` where there is no data.
    ///
    /// Swift's `String` treats some keys as equal although their bytes differ. A dictionary has only one of these;
    /// `children` has all.
    public var value: Any? { ValueWriter.plain(node) }

    /// The priority; `NSNull` for none.
    public var priority: Any? { node.priority.map { ValueWriter.any($0) } ?? NSNull() }

    public var ref: DatabaseReference {
        guard let database else { return DatabaseReference() }
        return DatabaseReference(database: database, path: path)
    }

    public var childrenCount: UInt { UInt(node.childCount) }

    /// Enumerates `DataSnapshot` objects in the order of the query.
    public var children: NSEnumerator {
        ListEnumerator(
            query.orderedChildren(of: node).map { DataSnapshot($0.node, at: path.child($0.key), of: database) })
    }

    /// The data at a path below, which may be empty.
    public func childSnapshot(forPath path: String) -> DataSnapshot {
        let below = location(path, "childSnapshot(forPath:)")
        return DataSnapshot(node.node(at: below), at: self.path + below, of: database)
    }

    public func hasChild(_ path: String) -> Bool { !node.node(at: location(path, "hasChild(_:)")).isEmpty }

    public func hasChildren() -> Bool { node.childCount > 0 }

    public func exists() -> Bool { !node.isEmpty }

    /// The value with priorities: dictionaries have `.value` and `.priority`, and there are no arrays.
    public func valueInExportFormat() -> Any? { ValueWriter.export(node) }

    private func location(_ path: String, _ call: String) -> TreePath {
        orTrap { () throws(Status) in try Paths.path(path, below: .root, call) }
    }

    public override var description: String { "Snap (\(key)) \(value ?? NSNull())" }
}
