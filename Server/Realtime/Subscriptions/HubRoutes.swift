import HearthModel
import HearthTree
import HearthTreeStorage

/// Finds the places of the trie that a commit's changes concern.
struct HubRoutes {
    private let root: HubLocation
    private let changes: [TreeChange]
    private let before: TreeView
    private let looks: HubReads
    private(set) var all: [HubRoute] = []
    private var positions: [ObjectIdentifier: Int] = [:]
    /// Nil until somebody listens below a change.
    private var areApart: Bool?

    /// - Parameter before: the tree without the changes.
    init(_ root: HubLocation, _ changes: [TreeChange], before: TreeView, _ looks: HubReads) {
        self.root = root
        self.changes = changes
        self.before = before
        self.looks = looks
        for index in changes.indices { add(index) }
    }

    /// So many changes are compared with each other; of more it counts as possible that one is inside of another.
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
        // A priority is nothing to those below.
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

/// What a group of commits may still read of the store to find out who need not be told of it. Belongs to the writer's
/// thread.
final class HubReads {
    private static let countMax = 1024
    /// Of what was there before and may be compared.
    private static let bytesMax = 2 * Limits.realtimeCompareBytesMax
    /// What a comparison costs at least.
    private static let comparisonBytesMin = 1024

    private var countLeft = HubReads.countMax
    private var bytesLeft = HubReads.bytesMax

    /// Places of the trie that were looked at, for tests that count work.
    private(set) var visits = 0

    func visit() { visits += 1 }

    /// A new group.
    func reset() {
        countLeft = Self.countMax
        bytesLeft = Self.bytesMax
    }

    /// - Returns: false when there is no look left.
    func take(_ count: Int = 1) -> Bool {
        if countLeft < count { return false }
        countLeft -= count
        return true
    }

    /// What is at a place; nil when that is too much.
    func node(at path: TreePath, _ view: TreeView) throws(Status) -> Node? {
        let limit = min(bytesLeft, Limits.realtimeCompareBytesMax)
        if limit <= 0 { return nil }
        let size = try view.sizeEstimate(at: path, upTo: limit)
        bytesLeft -= max(size, Self.comparisonBytesMin)
        return size > limit ? nil : try view.node(at: path)
    }
}

/// Finds the listened places below a change where something is another than before: the trie and the data are walked
/// together, so that it costs what both have, and not what one of them has.
///
/// Where finding out would cost much, a place counts as changed: to tell what a listener knows already does no harm.
struct PlacesBelow {
    struct Found {
        var place: HubLocation
        /// What is there after the change.
        var part: Node
        /// Whether that is known to be another than before.
        var isChanged: Bool
    }

    private let before: TreeView
    private let looks: HubReads
    private(set) var found: [Found] = []

    /// More children than these are asked for one by one.
    private static let keysMax = 256

    init(_ before: TreeView, _ looks: HubReads) {
        self.before = before
        self.looks = looks
    }

    mutating func find(below place: HubLocation, _ change: TreeChange) {
        do throws(Status) {
            if let old = try looks.node(at: change.path, before) { return compare(place, old, change.node) }
        } catch {
            // The tree can't be read there: who listens is told what the write says.
        }
        search(place, change.node)
    }

    // MARK: What was there is in memory

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

    // MARK: What was there is asked for

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

    /// The names of what was there, when they are few and the places many.
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
