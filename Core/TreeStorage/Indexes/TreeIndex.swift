import HearthTree

/// An index as it is stored.
struct TreeIndex: Sendable {
    let id: UInt32
    let definition: TreeIndexDefinition
    var state: TreeIndexState
    /// The pattern's keys; nil for any.
    let pattern: [TreeKey?]
    /// The path from a child to its order value; nil for the child itself.
    let inside: TreePath?

    init?(id: UInt32, definition: TreeIndexDefinition, state: TreeIndexState) {
        switch definition.index {
        case .priority, .key: return nil
        case .value: inside = nil
        case .child(let path): inside = path.isRoot ? nil : path
        }
        self.id = id
        self.definition = definition
        self.state = state
        // Definitions that differ only in the names of variables are equal.
        pattern = definition.pattern.map { $0.utf8.first == UInt8(ascii: "$") ? nil : TreeKey($0) }
    }

    /// Whether the first keys of a path match the pattern's.
    func fits(_ path: TreePath) -> Bool {
        zip(pattern, path.keys).allSatisfy { part, key in part.map { $0 == key } ?? true }
    }

    /// The identity of a definition.
    var likeness: TreeIndexLikeness { TreeIndexLikeness(pattern: pattern, inside: inside) }

    // MARK: Entries

    /// All entries below a location: with the path's end behind it, only those of its own children.
    func prefix(_ location: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [PathCode.Space.index]
        bytes.append(contentsOf: TreeMeta.encode(id))
        bytes.append(contentsOf: location.dropFirst())
        return bytes
    }

    // MARK: Stored form

    /// The pattern, and behind a 00 the path of the value; keys contain neither `/` nor 00.
    var stored: [UInt8] {
        var bytes = [state.rawValue]
        bytes.append(contentsOf: pattern.map { $0?.string ?? "$" }.joined(separator: "/").utf8)
        bytes.append(0)
        bytes.append(contentsOf: (inside?.string ?? "").utf8)
        return bytes
    }

    init?(id: UInt32, stored bytes: [UInt8]) {
        guard let first = bytes.first, let state = TreeIndexState(rawValue: first),
            let end = bytes.firstIndex(of: 0)
        else { return nil }
        let pattern = bytes[1..<end].split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        let inside = TreePath(String(decoding: bytes[(end + 1)...], as: UTF8.self))
        self.init(
            id: id,
            definition: TreeIndexDefinition(pattern: pattern, index: inside.isRoot ? .value : .child(inside)),
            state: state)
    }
}
