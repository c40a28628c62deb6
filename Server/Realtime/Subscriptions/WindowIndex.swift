import HearthModel
import HearthEngine
import HearthTree

/// The windows of a location by the index that orders them and by their range of positions on it. So a commit visits
/// only the windows in whose range a changed child was or is.
///
/// Many windows may be ordered by many different paths inside the children, most of which a child doesn't have. Missing
/// paths are not looked up individually: windows that contain children without a value are stored together for all
/// paths.
struct WindowIndex {
    /// A window as it is stored in the index: another object whenever its range changes.
    final class Entry {
        fileprivate(set) var window: RealtimeSharedQuery?
        fileprivate let query: TreeQuery
        fileprivate let edge: FilteredWindow.Position?

        fileprivate init(_ window: RealtimeSharedQuery) {
            self.window = window
            query = window.query
            edge = window.edge
        }
    }

    private var byIndex: [TreeQuery.Index: IntervalIndex<Entry>] = [:]
    /// The windows that are ordered by a path inside the children and whose range contains children without a value.
    private var lacking = IntervalIndex<Entry>()
    /// The paths inside children that windows are ordered by.
    private(set) var paths = OrderPaths()

    func isUsed(_ index: TreeQuery.Index) -> Bool { byIndex[index] != nil }

    /// Inserts a window by its present range.
    mutating func file(_ window: RealtimeSharedQuery) {
        if let entry = window.entry {
            if entry.edge == window.edge { return }
            remove(window)
        }
        let entry = Entry(window)
        window.entry = entry
        let (index, range) = (window.query.index, window.range)
        if byIndex[index] == nil, case .child(let path) = index { paths.insert(path.keys[...]) }
        byIndex[index, default: IntervalIndex()].insert(entry, range)
        if case .child = index, let part = Self.withoutValue(range) { lacking.insert(entry, part) }
    }

    mutating func remove(_ window: RealtimeSharedQuery) {
        guard let entry = window.entry else { return }
        window.entry = nil
        // Its remaining nodes in a tree of ranges must not retain the window.
        entry.window = nil
        let index = window.query.index
        byIndex[index]?.remove(entry)
        if byIndex[index]?.count == 0 {
            byIndex[index] = nil
            if case .child(let path) = index { paths.remove(path.keys[...]) }
        }
        if case .child = index {
            let range = entry.edge.map { window.query.positions(upTo: $0.key, $0.value) } ?? window.query.positions
            if Self.withoutValue(range) != nil { lacking.remove(entry) }
        }
    }

    /// The part of a range that contains the children without a value.
    private static func withoutValue(_ range: KeyRange) -> KeyRange? {
        var part = TreeQuery.positionsWithoutValue
        if UTF8Order.compare(part.lower, range.lower) < 0 { part.lower = range.lower }
        if let upper = range.upper, part.upper.map({ UTF8Order.compare(upper, $0) < 0 }) ?? true { part.upper = upper }
        return part.isEmpty ? nil : part
    }

    /// The windows in whose range children were or are, with those children.
    func concerned(by children: TouchedChildren) -> [(window: RealtimeSharedQuery, keys: [TreeKey])] {
        var found: [(window: RealtimeSharedQuery, keys: [TreeKey])] = []
        var positions: [ObjectIdentifier: Int] = [:]
        func add(_ entry: Entry, _ key: TreeKey) {
            guard let window = entry.window else { return }
            if let position = positions[ObjectIdentifier(window)] {
                if found[position].keys.last != key { found[position].keys.append(key) }
            } else {
                positions[ObjectIdentifier(window)] = found.count
                found.append((window, [key]))
            }
        }
        for key in children.keys {
            let (before, after) = (children.before(key), children.after(key))
            let states = before == after ? [after] : [before, after]
            for state in states where state.exists {
                for (index, value) in state.values {
                    byIndex[index]?.forEach(containing: TreeQuery.position(of: key, value)) { add($0, key) }
                }
            }
            if lacking.count == 0 { continue }
            lacking.forEach(containing: TreeQuery.position(of: key, .null)) { entry in
                if states.contains(where: { $0.exists && $0.values[entry.query.index] == nil }) { add(entry, key) }
            }
        }
        return found
    }
}
