import HearthModel
import HearthTree

/// Patterns of the Realtime Database's locations, as a tree in which a change is followed from the root down: what doesn't match
/// is left after the first key that is different.
package struct TreePatterns<Element: Sendable>: Sendable {
    private struct Step: Sendable {
        var literals: [TreeKey: Int] = [:]
        var parts: [(prefix: [UInt8], suffix: [UInt8], next: Int)] = []
        var elements: [Element] = []
    }

    /// How far a path matches: each pattern that may match in the end is at one of its steps.
    package struct Position: Sendable {
        fileprivate var steps: [Int]

        /// Whether no pattern matches the path or one below it.
        package var isEmpty: Bool { steps.isEmpty }
    }

    private var steps = [Step()]

    package init() {}

    package var isEmpty: Bool { steps.count == 1 }

    /// - Parameter pattern: of locations: it has no `**`.
    package mutating func insert(_ element: Element, at pattern: EventPattern) {
        var step = 0
        for segment in pattern.segments {
            switch segment {
            case .literal(let bytes): step = next(after: step, TreeKey(String(decoding: bytes, as: UTF8.self)))
            case .part(let prefix, let suffix): step = next(after: step, prefix, suffix)
            case .many: preconditionFailure("a pattern of locations has no **")
            }
        }
        steps[step].elements.append(element)
    }

    private mutating func next(after step: Int, _ key: TreeKey) -> Int {
        if let known = steps[step].literals[key] { return known }
        steps.append(Step())
        steps[step].literals[key] = steps.count - 1
        return steps.count - 1
    }

    private mutating func next(after step: Int, _ prefix: [UInt8], _ suffix: [UInt8]) -> Int {
        if let known = steps[step].parts.first(where: { $0.prefix == prefix && $0.suffix == suffix }) {
            return known.next
        }
        steps.append(Step())
        steps[step].parts.append((prefix, suffix, steps.count - 1))
        return steps.count - 1
    }

    // MARK: Following a path

    /// That of the root.
    package var start: Position { Position(steps: [0]) }

    package func position(after position: Position, _ key: TreeKey) -> Position {
        var found: [Int] = []
        for step in position.steps {
            if let next = steps[step].literals[key] { found.append(next) }
            for part in steps[step].parts where Self.matches(key, part.prefix, part.suffix) { found.append(part.next) }
        }
        return Position(steps: found)
    }

    private static func matches(_ key: TreeKey, _ prefix: [UInt8], _ suffix: [UInt8]) -> Bool {
        if prefix.isEmpty, suffix.isEmpty { return true }
        let bytes = key.string.utf8
        return bytes.count >= prefix.count + suffix.count && bytes.starts(with: prefix)
            && bytes.suffix(suffix.count).elementsEqual(suffix)
    }

    /// The elements whose patterns match the path.
    package func elements(at position: Position) -> [Element] { position.steps.flatMap { steps[$0].elements } }

    /// Whether a pattern matches the path itself.
    package func hasElements(at position: Position) -> Bool {
        position.steps.contains { !steps[$0].elements.isEmpty }
    }

    /// Whether a pattern may match a path below.
    package func goesOn(at position: Position) -> Bool {
        position.steps.contains { !steps[$0].literals.isEmpty || !steps[$0].parts.isEmpty }
    }

    /// The keys that may follow; nil when that isn't a list.
    package func keys(at position: Position) -> Set<TreeKey>? {
        var keys: Set<TreeKey> = []
        for step in position.steps {
            if !steps[step].parts.isEmpty { return nil }
            keys.formUnion(steps[step].literals.keys)
        }
        return keys
    }

    /// How many keys may follow, at most; nil when that isn't a list. Costs less than the list.
    package func keyCount(at position: Position) -> Int? {
        var count = 0
        for step in position.steps {
            if !steps[step].parts.isEmpty { return nil }
            count += steps[step].literals.count
        }
        return count
    }

    /// Whether a change at a path may concern a location that a pattern matches: above it, there, or below.
    package func concern(_ path: TreePath) -> Bool {
        var position = start
        for key in path.keys {
            position = self.position(after: position, key)
            if position.isEmpty { return false }
            if hasElements(at: position) { return true }
        }
        return goesOn(at: position)
    }
}
