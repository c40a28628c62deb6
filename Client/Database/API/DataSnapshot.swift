public import Foundation
import HearthModel
import HearthTree

/// The data of a place at one moment. It never changes.
public class DataSnapshot: NSObject, @unchecked Sendable {
    // All of it is constant.
    let node: Node
    private let path: TreePath
    private let database: Database?
    /// Orders the children.
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

    /// Of no use: nothing at no place.
    public override init() {
        node = .empty
        path = .root
        query = TreeQuery()
        database = nil
    }

    /// Empty at the database's root.
    public var key: String { path.last?.string ?? "" }

    /// Texts, `NSNumber` for numbers and booleans, dictionaries, arrays where the keys count from zero, with `NSNull` at
    /// places without a child; `NSNull` where nothing is.
    ///
    /// Two keys that Swift's `String` calls equal, though their bytes differ, are one in a dictionary: `children` has both.
    public var value: Any? { ValueWriter.plain(node) }

    /// `NSNull` for none.
    public var priority: Any? { node.priority.map { ValueWriter.any($0) } ?? NSNull() }

    public var ref: DatabaseReference {
        guard let database else { return DatabaseReference() }
        return DatabaseReference(database: database, path: path)
    }

    public var childrenCount: UInt { UInt(node.childCount) }

    /// Of `DataSnapshot`, in the order of the query.
    public var children: NSEnumerator {
        ListEnumerator(
            query.orderedChildren(of: node).map { DataSnapshot($0.node, at: path.child($0.key), of: database) })
    }

    /// The data below, which may be none.
    public func childSnapshot(forPath path: String) -> DataSnapshot {
        let below = place(path, "childSnapshot(forPath:)")
        return DataSnapshot(node.node(at: below), at: self.path + below, of: database)
    }

    public func hasChild(_ path: String) -> Bool { !node.node(at: place(path, "hasChild(_:)")).isEmpty }

    public func hasChildren() -> Bool { node.childCount > 0 }

    public func exists() -> Bool { !node.isEmpty }

    /// With priorities: `.value` and `.priority`, and no arrays.
    public func valueInExportFormat() -> Any? { ValueWriter.export(node) }

    private func place(_ path: String, _ call: String) -> TreePath {
        orTrap { () throws(Status) in try Paths.path(path, below: .root, call) }
    }

    public override var description: String { "Snap (\(key)) \(value ?? NSNull())" }
}
