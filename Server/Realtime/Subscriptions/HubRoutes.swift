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
