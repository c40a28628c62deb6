public import Foundation
import HearthModel
import HearthTree

/// The data of a transaction, which its function reads and changes. It is used only within the function, on the
/// function's thread.
///
/// Invalid values, keys and paths end the program, as those of `DatabaseReference.setValue(_:)` do.
public class MutableData: NSObject {
    /// The whole data of the transaction, shared by its children.
    private final class Whole {
        var node: Node
        init(_ node: Node) { self.node = node }
    }

    private let whole: Whole
    /// The location of the transaction.
    private let base: TreePath
    /// The path below the location of the transaction.
    private let path: TreePath

    init(_ node: Node, at base: TreePath) {
        whole = Whole(node)
        self.base = base
        path = .root
    }

    private init(_ whole: Whole, base: TreePath, path: TreePath) {
        self.whole = whole
        self.base = base
        self.path = path
    }

    /// Creates data that belongs to no transaction. It has no use.
    public override init() {
        whole = Whole(.empty)
        base = .root
        path = .root
    }

    var node: Node { whole.node.node(at: path) }

    /// The data, as `DataSnapshot.value`; `NSNull` where there is no data. Setting it replaces the data and its
    /// priority, as `DatabaseReference.setValue(_:)` does; nil and `NSNull` delete.
    public var value: Any? {
        get { ValueWriter.plain(node) }
        set { orTrap { () throws(Status) in try set(value: newValue) } }
    }

    func set(value: Any?) throws(Status) {
        let node = try ValueReader(call: "MutableData.value").node(value, at: base + path)
        whole.node = whole.node.setting(path, to: node)
    }

    /// The priority: a `String` or an `NSNumber`; `NSNull` for none. It may be set to a finite number, a string, or nil
    /// and `NSNull` for none, and has no effect where there is no data.
    public var priority: Any? {
        get { node.priority.map { ValueWriter.any($0) } ?? NSNull() }
        set { orTrap { () throws(Status) in try set(priority: newValue) } }
    }

    func set(priority: Any?) throws(Status) {
        let priority = try ValueReader(call: "MutableData.priority").priority(priority, at: base + path)
        whole.node = whole.node.setting(path, to: node.with(priority: priority))
    }

    /// The last key of the location; nil at the database's root.
    public var key: String? { (base + path).last?.string }

    /// The number of children; 0 for a value without children.
    public var childrenCount: UInt { UInt(node.childCount) }

    /// Enumerates the children as `MutableData` objects, by priority and then by key. Changes of these change the
    /// transaction's data.
    public var children: NSEnumerator {
        let keys = TreeQuery().orderedChildren(of: node).map(\.key)
        return ListEnumerator(keys.map { MutableData(whole, base: base, path: path.child($0)) })
    }

    /// Whether there are children.
    /// - Returns: false for a value without children, and where there is no data.
    public func hasChildren() -> Bool { node.childCount > 0 }

    /// Whether there is data at a path below.
    /// - Parameter path: a key, or several joined by `/`; at most 32 keys and 768 bytes.
    /// - Returns: true if there is data.
    public func hasChild(atPath path: String) -> Bool {
        orTrap { () throws(Status) in
            !node.node(at: try Paths.path(path, below: .root, "hasChild(atPath:)")).isEmpty
        }
    }

    /// The data at a path below, through which the transaction's data can be changed.
    /// - Parameter path: a key, or several joined by `/`; at most 32 keys and 768 bytes.
    /// - Returns: the data, which may be empty.
    public func childData(byAppendingPath path: String) -> MutableData {
        orTrap { () throws(Status) in
            MutableData(whole, base: base, path: try Paths.path(path, below: self.path, "childData(byAppendingPath:)"))
        }
    }

    public override var description: String { "MutableData (\(key ?? "top-most")) \(value ?? NSNull())" }
}
