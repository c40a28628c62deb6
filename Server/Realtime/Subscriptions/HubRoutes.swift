import HearthModel
import HearthTree
import HearthTreeStorage

/// Finds the locations of the trie that a commit's changes affect.
struct HubRoutes {
    private let root: HubLocation
    private let changes: [TreeChange]
    private let before: TreeView
    private let looks: HubReads
    private(set) var all: [HubRoute] = []
    private var positions: [ObjectIdentifier: Int] = [:]
    /// Nil unless there is a listener below a change.
    private var areApart: Bool?

    /// - Parameter before: the tree without the changes.
    init(_ root: HubLocation, _ changes: [TreeChange], before: TreeView, _ looks: HubReads) {
        self.root = root
        self.changes = changes
        self.before = before
        self.looks = looks
        for index in changes.indices { add(index) }
    }

    /// The maximum number of changes that are compared with each other. With more, a change may be inside of another.
    private static let comparedMax = 2_000

    /// Whether no change is inside of another.
    private static func areApart(_ changes: [TreeChange]) -> Bool {
        if changes.count == 1 { return true }
        if changes.count > comparedMax { return false }
        let paths = changes.map(\.place).sorted { $0.keys.lexicographicallyPrecedes($1.keys) }
        return !zip(paths, paths.dropFirst()).contains { $0.contains($1) }
    }

    private mutating func add(_ index: Int) {
        let change = changes[index]
        var place = root
        if place.isListened { all[position(of: place)].inside.append(index) }
        for key in change.place.keys {
            guard let next = place.child(key) else { return }
            place = next
            if place.isListened { all[position(of: place)].inside.append(index) }
        }
        // Listeners below do not see a priority.
        if change.isPriority || place.childCount == 0 { return }
        let areApart = self.areApart ?? Self.areApart(changes)
        self.areApart = areApart
        if areApart {
            var below = PlacesBelow(before, looks)
            below.find(below: place, change)
            for found in below.found {
                let position = position(of: found.place)
                all[position].above = index
                all[position].part = found.part
                all[position].isChanged = found.isChanged
            }
        } else {
            var below: [HubLocation] = []
            place.forEachBelow { if $0.isListened { below.append($0) } }
            for place in below { all[position(of: place)].above = index }
        }
    }

    private mutating func position(of place: HubLocation) -> Int {
        if let known = positions[ObjectIdentifier(place)] { return known }
        positions[ObjectIdentifier(place)] = all.count
        all.append(HubRoute(place: place))
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
struct PlacesBelow {
    struct Found {
        var place: HubLocation
        /// The value after the change.
        var part: Node
        /// Whether the value is known to be different.
        var isChanged: Bool
    }

    private let before: TreeView
    private let looks: HubReads
    private(set) var found: [Found] = []

    /// Above this number of children, each is read individually.
    private static let keysMax = 256

    init(_ before: TreeView, _ looks: HubReads) {
        self.before = before
        self.looks = looks
    }

    mutating func find(below place: HubLocation, _ change: TreeChange) {
        do throws(Status) {
            if let old = try looks.node(at: change.path, before) { return compare(place, old, change.node) }
        } catch {
            // The tree cannot be read there: the listeners receive the event of the write.
        }
        search(place, change.node)
    }

    // MARK: The earlier value is in memory

    private mutating func compare(_ place: HubLocation, _ old: Node, _ new: Node) {
        if place.childCount > old.childCount + new.childCount {
            for (key, child) in old.children {
                if let inner = place.child(key) { compare(at: inner, child, new.child(key)) }
            }
            for (key, child) in new.children where old.child(key).isEmpty {
                if let inner = place.child(key) { compare(at: inner, .empty, child) }
            }
            return
        }
        var children: [(TreeKey, HubLocation)] = []
        place.forEachChild { children.append(($0, $1)) }
        for (key, inner) in children { compare(at: inner, old.child(key), new.child(key)) }
    }

    private mutating func compare(at place: HubLocation, _ old: Node, _ new: Node) {
        looks.visit()
        if old.isEmpty, new.isEmpty { return }
        if place.isListened {
            if old == new { return }
            found.append(Found(place: place, part: new, isChanged: true))
        }
        compare(place, old, new)
    }

    // MARK: The earlier value is read

    private mutating func search(_ place: HubLocation, _ new: Node) {
        var children: [(TreeKey, HubLocation)] = []
        if let keys = oldKeys(place), keys.count + new.childCount < place.childCount {
            for key in keys { if let inner = place.child(key) { children.append((key, inner)) } }
            let known = Set(keys)
            for (key, _) in new.children where !known.contains(key) {
                if let inner = place.child(key) { children.append((key, inner)) }
            }
        } else {
            place.forEachChild { children.append(($0, $1)) }
        }
        for (key, inner) in children {
            looks.visit()
            let part = new.child(key)
            if part.isEmpty, isKnownToBeEmpty(inner.path) { continue }
            if inner.isListened { found.append(Found(place: inner, part: part, isChanged: false)) }
            search(inner, part)
        }
    }

    /// The names of the earlier children, when they are few and the trie locations many.
    private func oldKeys(_ place: HubLocation) -> [TreeKey]? {
        guard place.childCount > Self.keysMax, looks.take(Self.keysMax) else { return nil }
        do throws(Status) {
            let keys = try before.children(of: place.path, limit: Self.keysMax + 1)
            return keys.count > Self.keysMax ? nil : keys
        } catch {
            return nil
        }
    }

    private func isKnownToBeEmpty(_ path: TreePath) -> Bool {
        guard looks.take() else { return false }
        do throws(Status) { return try !before.exists(at: path) } catch { return false }
    }
}
