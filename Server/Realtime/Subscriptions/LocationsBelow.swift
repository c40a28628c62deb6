import HearthModel
import HearthTree
import HearthTreeStorage

/// Finds the locations with listeners below a change whose value is different. The trie and the data are walked
/// together: the cost depends on their intersection, not on the size of one of them.
///
/// Where the comparison would cost much, a location counts as changed: an event without a difference does no harm.
struct LocationsBelow {
    struct Found {
        var location: HubLocation
        /// The value after the change.
        var part: Node
        /// Whether the value is known to be different.
        var isChanged: Bool
    }

    private let before: TreeView
    private let reads: HubReads
    private(set) var found: [Found] = []

    /// Above this number of children, each is read individually.
    private static let keysMax = 256

    init(_ before: TreeView, _ reads: HubReads) {
        self.before = before
        self.reads = reads
    }

    mutating func find(below location: HubLocation, _ change: TreeChange) {
        do throws(Status) {
            if let old = try reads.node(at: change.path, before) { return compare(location, old, change.node) }
        } catch {
            // The tree cannot be read there: the listeners receive the event of the write.
        }
        search(location, change.node)
    }

    // MARK: The earlier value is in memory

    private mutating func compare(_ location: HubLocation, _ old: Node, _ new: Node) {
        if location.childCount > old.childCount + new.childCount {
            for (key, child) in old.children {
                if let inner = location.child(key) { compare(at: inner, child, new.child(key)) }
            }
            for (key, child) in new.children where old.child(key).isEmpty {
                if let inner = location.child(key) { compare(at: inner, .empty, child) }
            }
            return
        }
        var children: [(TreeKey, HubLocation)] = []
        location.forEachChild { children.append(($0, $1)) }
        for (key, inner) in children { compare(at: inner, old.child(key), new.child(key)) }
    }

    private mutating func compare(at location: HubLocation, _ old: Node, _ new: Node) {
        reads.visit()
        if old.isEmpty, new.isEmpty { return }
        if location.isListened {
            if old == new { return }
            found.append(Found(location: location, part: new, isChanged: true))
        }
        compare(location, old, new)
    }

    // MARK: The earlier value is read

    private mutating func search(_ location: HubLocation, _ new: Node) {
        var children: [(TreeKey, HubLocation)] = []
        if let keys = oldKeys(location), keys.count + new.childCount < location.childCount {
            for key in keys { if let inner = location.child(key) { children.append((key, inner)) } }
            let known = Set(keys)
            for (key, _) in new.children where !known.contains(key) {
                if let inner = location.child(key) { children.append((key, inner)) }
            }
        } else {
            location.forEachChild { children.append(($0, $1)) }
        }
        for (key, inner) in children {
            reads.visit()
            let part = new.child(key)
            if part.isEmpty, isKnownToBeEmpty(inner.path) { continue }
            if inner.isListened { found.append(Found(location: inner, part: part, isChanged: false)) }
            search(inner, part)
        }
    }

    /// The names of the earlier children, when they are few and the trie locations many.
    private func oldKeys(_ location: HubLocation) -> [TreeKey]? {
        guard location.childCount > Self.keysMax, reads.take(Self.keysMax) else { return nil }
        do throws(Status) {
            let keys = try before.children(of: location.path, limit: Self.keysMax + 1)
            return keys.count > Self.keysMax ? nil : keys
        } catch {
            return nil
        }
    }

    private func isKnownToBeEmpty(_ path: TreePath) -> Bool {
        guard reads.take() else { return false }
        do throws(Status) { return try !before.exists(at: path) } catch { return false }
    }
}
