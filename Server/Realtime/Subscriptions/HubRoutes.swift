import HearthModel
import HearthTree
import HearthTreeStorage

/// Finds the locations of the trie that a commit's changes affect.
struct HubRoutes {
    private let root: HubLocation
    private let changes: [TreeChange]
    private let before: TreeView
    private let reads: HubReads
    private(set) var all: [HubRoute] = []
    private var positions: [ObjectIdentifier: Int] = [:]
    /// Nil unless there is a listener below a change.
    private var areApart: Bool?

    /// - Parameter before: the tree without the changes.
    init(_ root: HubLocation, _ changes: [TreeChange], before: TreeView, _ reads: HubReads) {
        self.root = root
        self.changes = changes
        self.before = before
        self.reads = reads
        for index in changes.indices { add(index) }
    }

    /// The maximum number of changes that are compared with each other. With more, a change may be inside of another.
    private static let comparedMax = 2_000

    /// Whether no change is inside of another.
    private static func areApart(_ changes: [TreeChange]) -> Bool {
        if changes.count == 1 { return true }
        if changes.count > comparedMax { return false }
        let paths = changes.map(\.location).sorted { $0.keys.lexicographicallyPrecedes($1.keys) }
        return !zip(paths, paths.dropFirst()).contains { $0.contains($1) }
    }

    private mutating func add(_ index: Int) {
        let change = changes[index]
        var location = root
        if location.isListened { all[position(of: location)].inside.append(index) }
        for key in change.location.keys {
            guard let next = location.child(key) else { return }
            location = next
            if location.isListened { all[position(of: location)].inside.append(index) }
        }
        // Listeners below do not see a priority.
        if change.isPriority || location.childCount == 0 { return }
        let areApart = self.areApart ?? Self.areApart(changes)
        self.areApart = areApart
        if areApart {
            var below = LocationsBelow(before, reads)
            below.find(below: location, change)
            for found in below.found {
                let position = position(of: found.location)
                all[position].above = index
                all[position].part = found.part
                all[position].isChanged = found.isChanged
            }
        } else {
            var below: [HubLocation] = []
            location.forEachBelow { if $0.isListened { below.append($0) } }
            for location in below { all[position(of: location)].above = index }
        }
    }

    private mutating func position(of location: HubLocation) -> Int {
        if let known = positions[ObjectIdentifier(location)] { return known }
        positions[ObjectIdentifier(location)] = all.count
        all.append(HubRoute(location: location))
        return all.count - 1
    }
}

/// The remaining reads of the store that a group of commits may use to find the listeners that need no event. Belongs
/// to the writer's thread.
final class HubReads {
    private static let countMax = 1024
    /// The bytes of earlier data that may be compared.
    private static let bytesMax = 2 * Limits.realtimeCompareBytesMax
    /// The minimum cost of a comparison.
    private static let comparisonBytesMin = 1024

    private var countLeft = HubReads.countMax
    private var bytesLeft = HubReads.bytesMax

    /// The number of trie locations that were visited; for tests that count work.
    private(set) var visits = 0

    func visit() { visits += 1 }

    /// Begins a new group.
    func reset() {
        countLeft = Self.countMax
        bytesLeft = Self.bytesMax
    }

    /// - Returns: false when no read is left.
    func take(_ count: Int = 1) -> Bool {
        if countLeft < count { return false }
        countLeft -= count
        return true
    }

    /// The node at a location; nil when it is too large.
    func node(at path: TreePath, _ view: TreeView) throws(Status) -> Node? {
        let limit = min(bytesLeft, Limits.realtimeCompareBytesMax)
        if limit <= 0 { return nil }
        let size = try view.sizeEstimate(at: path, upTo: limit)
        bytesLeft -= max(size, Self.comparisonBytesMin)
        return size > limit ? nil : try view.node(at: path)
    }
}

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
