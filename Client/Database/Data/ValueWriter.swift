import Foundation
import HearthTree

/// Converts tree nodes to Foundation's values, for `DataSnapshot.value` and `MutableData.value`.
///
/// Numbers and Booleans are `NSNumber`. On Linux an `Any` that holds an `Int64` does not cast with `as? Double`,
/// while an `NSNumber` casts to each of Swift's numeric types that can hold it.
enum ValueWriter {
    /// Without priorities. Children whose keys count from zero become an array.
    static func plain(_ node: Node) -> Any {
        if let value = node.value { return any(value) }
        guard !node.isEmpty else { return NSNull() }
        let children = node.children
        if let last = arrayEnd(children) {
            var array = [Any](repeating: NSNull(), count: last + 1)
            for (key, child) in children { array[key.arrayIndex!] = plain(child) }
            return array
        }
        var map = [String: Any](minimumCapacity: children.count)
        for (key, child) in children { map[key.string] = plain(child) }
        return map
    }

    /// With priorities, and never with arrays.
    static func export(_ node: Node) -> Any {
        guard !node.isEmpty else { return NSNull() }
        if let value = node.value {
            guard let priority = node.priority else { return any(value) }
            return [".value": any(value), ".priority": any(priority)] as [String: Any]
        }
        var map = [String: Any](minimumCapacity: node.childCount + 1)
        for (key, child) in node.children { map[key.string] = export(child) }
        if let priority = node.priority { map[".priority"] = any(priority) }
        return map
    }

    static func any(_ scalar: Scalar) -> Any {
        switch scalar {
        case .bool(let value): NSNumber(value: value)
        case .integer(let value): NSNumber(value: value)
        case .double(let value): NSNumber(value: value)
        case .string(let value): value
        case .deferred(.timestamp): [".sv": "timestamp"] as [String: Any]
        case .deferred(.increment(let delta)): [".sv": ["increment": NSNumber(value: delta)]] as [String: Any]
        case .deferred(.incrementDouble(let delta)): [".sv": ["increment": NSNumber(value: delta)]] as [String: Any]
        }
    }

    /// The last index if the children become an array: all keys are indexes, and more than half of the indexes up
    /// to the last are used.
    private static func arrayEnd(_ children: Children) -> Int? {
        // In the order of keys non-index keys are last, so checking the last key finds most of them.
        guard let last = children.last?.key.arrayIndex, last < 2 * children.count,
            children.allSatisfy({ $0.key.arrayIndex != nil })
        else { return nil }
        return last
    }
}
