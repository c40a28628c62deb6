/// The children of an inner node, in the order of their keys; none of them is empty.
///
/// A value that shares structure: up to `ChildStorage.chunkCountMax` children are one array, more are an array of
/// arrays. A change copies one of the inner arrays and the references to the others, so that it costs some microseconds
/// in a node of a hundred thousand children.
package struct Children: Sendable {
    package typealias Element = (key: TreeKey, node: Node)

    /// Nil without children.
    private(set) var storage: ChildStorage?

    init() {}

    /// Of equal keys the last applies; empty children are omitted.
    init(_ children: some Sequence<(TreeKey, Node)>) { self.init(inAnyOrder: children.map { ($0, $1) }) }

    /// Of equal keys the last applies; empty children are omitted.
    init(inAnyOrder children: [Element]) {
        var isInOrder = true
        for index in children.indices.dropFirst() where children[index - 1].key >= children[index].key {
            isInOrder = false
            break
        }
        var children = children
        if !isInOrder {
            var byKey: [TreeKey: Node] = [:]
            for (key, node) in children { byKey[key] = node }
            children = byKey.map { ($0.key, $0.value) }.sorted { $0.key < $1.key }
        }
        self.init(inOrder: children.contains { $0.node.isEmpty } ? children.filter { !$0.node.isEmpty } : children)
    }

    /// - Parameter children: in the order of keys, none of them empty.
    init(inOrder children: [Element]) { storage = ChildStorage(inOrder: children) }

    /// - Parameter chunks: as in `ChildStorage`.
    init(chunks: [[Element]]) { storage = ChildStorage(chunks: chunks) }

    /// Nil where there is none; assigning nil removes.
    package internal(set) subscript(key: TreeKey) -> Node? {
        get {
            guard let storage else { return nil }
            let (chunk, offset) = storage.find(key)
            return offset < chunk.count && chunk[offset].key == key ? chunk[offset].node : nil
        }
        set {
            if let storage {
                self.storage = storage.setting(key, to: newValue)
            } else if let newValue {
                storage = ChildStorage(inOrder: [(key, newValue)])
            }
        }
    }

    /// Of the first child whose key isn't before `key`.
    package func position(of key: TreeKey) -> Int { storage?.position(of: key) ?? 0 }
}

extension Children: RandomAccessCollection {
    package var startIndex: Int { 0 }
    package var endIndex: Int { storage?.count ?? 0 }

    package subscript(position: Int) -> Element {
        guard let storage else { preconditionFailure("no child at \(position)") }
        return storage.element(at: position)
    }

    package func makeIterator() -> Iterator { Iterator(storage) }

    /// Iterates chunk by chunk, which costs less than finding each by its position.
    package struct Iterator: IteratorProtocol {
        private var chunk: [Element] = []
        private var offset = 0
        private var others: ArraySlice<[Element]> = []

        init(_ storage: ChildStorage?) {
            guard let storage else { return }
            switch storage.content {
            case .one(let elements): chunk = elements
            case .many(let chunks, _):
                chunk = chunks[0]
                others = chunks.dropFirst()
            }
        }

        package mutating func next() -> Element? {
            if offset == chunk.count {
                guard let next = others.popFirst() else { return nil }
                chunk = next
                offset = 0
            }
            offset += 1
            return chunk[offset - 1]
        }
    }
}

extension Children: Equatable {
    package static func == (lhs: Children, rhs: Children) -> Bool {
        if lhs.storage === rhs.storage { return true }
        return lhs.count == rhs.count && zip(lhs, rhs).allSatisfy { $0.key == $1.key && $0.node == $1.node }
    }
}
