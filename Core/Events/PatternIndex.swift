/// Finds the patterns that match a path without trying each: they are filed by the literal segments that they begin with.
package struct PatternIndex<Element: Sendable>: Sendable {
    private struct Node {
        var children: [[UInt8]: Int] = [:]
        var patterns: [(pattern: EventPattern, element: Element)] = []
    }

    private var nodes = [Node()]

    package init() {}

    package var isEmpty: Bool { nodes.count == 1 && nodes[0].patterns.isEmpty }

    package mutating func insert(_ element: Element, at pattern: EventPattern) {
        var node = 0
        for case .literal(let bytes) in pattern.segments.prefix(while: { if case .literal = $0 { true } else { false } }
        ) {
            if let child = nodes[node].children[bytes] {
                node = child
            } else {
                nodes.append(Node())
                nodes[node].children[bytes] = nodes.count - 1
                node = nodes.count - 1
            }
        }
        nodes[node].patterns.append((pattern, element))
    }

    /// Calls `body` with the elements whose patterns match, in no particular order.
    package func forEach(_ path: EventPath, _ body: (Element) -> Void) {
        var node = 0
        var depth = 0
        while true {
            for (pattern, element) in nodes[node].patterns where pattern.matches(path) { body(element) }
            if depth == path.count || nodes[node].children.isEmpty { return }
            guard let child = nodes[node].children[Array(path[depth])] else { return }
            node = child
            depth += 1
        }
    }

    /// How many patterns are compared with a path, for tests.
    func comparisons(_ path: EventPath) -> Int {
        var node = 0
        var count = nodes[0].patterns.count
        for depth in 0..<path.count {
            guard let child = nodes[node].children[Array(path[depth])] else { break }
            node = child
            count += nodes[node].patterns.count
        }
        return count
    }
}
