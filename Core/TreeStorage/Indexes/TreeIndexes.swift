import HearthModel
import HearthEngine
import HearthTree

/// 'b' while entries are missing, 'r' when it is complete, 'g' while entries are deleted.
enum TreeIndexState: UInt8 {
    case building = 0x62
    case ready = 0x72
    case going = 0x67
}

/// The order of an index, without the names of variables.
struct TreeIndexLikeness: Hashable, Sendable {
    let pattern: [TreeKey?]
    let inside: TreePath?
}

/// The indexes of a tree at one version. Each change makes a new object, so that two versions can be distinguished.
final class TreeIndexes: Sendable {
    let all: [TreeIndex]
    /// The indexes that writes keep up to date.
    let kept: [TreeIndex]
    private let patterns: TreeIndexPatterns

    init(_ all: [TreeIndex]) {
        self.all = all
        kept = all.filter { $0.state != .going }
        patterns = TreeIndexPatterns(kept)
    }

    /// The indexes that have a child at or above a location.
    func above(_ path: TreePath) -> [TreeIndex] {
        var found: [TreeIndex] = []
        patterns.collect(along: path.keys[...], into: &found)
        return found
    }

    /// For tests: the number of pattern parts that were examined for that.
    func stepsAbove(_ path: TreePath) -> Int {
        var found: [TreeIndex] = []
        return patterns.collect(along: path.keys[...], into: &found)
    }

    /// The indexes that have children at or below a location's own children.
    func belowOrAt(_ path: TreePath) -> [TreeIndex] {
        var found: [TreeIndex] = []
        patterns.forEach(at: path.keys[...]) { $0.collectAll(into: &found) }
        return found
    }

    static func load(_ snapshot: any Snapshot) throws(Status) -> TreeIndexes {
        var all: [TreeIndex] = []
        let cursor = try snapshot.scan(
            .meta, KeyRange(prefix: TreeMeta.indexPrefix), reverse: false, values: true,
            dropping: TreeMeta.indexPrefix.count)
        defer { cursor.close() }
        while try cursor.next() {
            // Not an index: the mark of a graft.
            if TreeMeta.id(cursor.key) == .max { continue }
            guard let index = TreeIndex(id: TreeMeta.id(cursor.key), stored: cursor.value) else {
                throw Status(.dataLoss, "The record of an index of the tree is damaged.")
            }
            all.append(index)
        }
        return TreeIndexes(all)
    }

    /// The index that has the children of a location in the order of a query, if its entries are complete.
    func ready(for index: TreeQuery.Index, at path: TreePath) -> TreeIndex? {
        let inside: TreePath?
        switch index {
        case .priority, .key: return nil
        case .value: inside = nil
        case .child(let path): inside = path.isRoot ? nil : path
        }
        var found: TreeIndex?
        patterns.forEach(at: path.keys[...]) { node in
            found = found ?? node.indexes.first { $0.state == .ready && $0.inside == inside }
        }
        return found
    }
}

/// Indexes by their patterns, so that those of a location are found without examining the others. Immutable.
private final class TreeIndexPatterns: @unchecked Sendable {
    private var children: [TreeKey: TreeIndexPatterns] = [:]
    /// For any key.
    private var any: TreeIndexPatterns?
    /// The indexes whose patterns end here.
    private(set) var indexes: [TreeIndex] = []

    private init() {}

    convenience init(_ indexes: [TreeIndex]) {
        self.init()
        for index in indexes {
            var node = self
            for part in index.pattern {
                if let next = node.next(part) {
                    node = next
                } else {
                    let made = TreeIndexPatterns()
                    if let part { node.children[part] = made } else { node.any = made }
                    node = made
                }
            }
            node.indexes.append(index)
        }
    }

    private func next(_ part: TreeKey?) -> TreeIndexPatterns? {
        if let part { children[part] } else { any }
    }

    /// The indexes whose patterns match the beginning of a path, but not all of it.
    /// - Returns: the number of pattern parts that were examined.
    @discardableResult
    func collect(along keys: ArraySlice<TreeKey>, into found: inout [TreeIndex]) -> Int {
        guard let key = keys.first else { return 1 }
        found += indexes
        let named = children[key]?.collect(along: keys.dropFirst(), into: &found) ?? 0
        return 1 + named + (any?.collect(along: keys.dropFirst(), into: &found) ?? 0)
    }

    func forEach(at keys: ArraySlice<TreeKey>, _ body: (TreeIndexPatterns) -> Void) {
        guard let key = keys.first else { return body(self) }
        children[key]?.forEach(at: keys.dropFirst(), body)
        any?.forEach(at: keys.dropFirst(), body)
    }

    func collectAll(into found: inout [TreeIndex]) {
        found += indexes
        for child in children.values { child.collectAll(into: &found) }
        any?.collectAll(into: &found)
    }
}
