import HearthModel
import HearthTree

/// Writes the JSON of the events of a walk, without building nodes.
///
/// Whether an inner node is an array in the plain form is known only at its end. Until then it is written as an object,
/// and while all its keys are indexes, the positions of its values are stored. A caller that knows the form earlier may
/// set it (`decide`).
struct JSONAssembler: SubtreeVisitor {
    private struct Level {
        /// The beginning of its output.
        var start: Int
        var priority: Scalar?
        var isEmpty = true
        /// The positions of the indexes' values; nil after another key.
        var elements: [(index: Int, string: Range<Int>)]?
        /// Of the child that is being written.
        var index: Int?
        /// Of a node that was decided to be an array: the index behind the last child's.
        var nextIndex: Int?
    }

    private(set) var string: [UInt8]
    private let form: TreeJSON.Form
    private var levels: [Level] = []

    init(appendingTo string: [UInt8], form: TreeJSON.Form) {
        self.string = string
        self.form = form
    }

    /// Whether the output cannot change any more: no open node can still become an array.
    var isSettled: Bool { levels.allSatisfy { $0.elements == nil } }

    /// Passes the output to a caller, which may empty it while it is settled.
    mutating func pour(_ sink: (inout [UInt8]) throws(Status) -> Void) throws(Status) { try sink(&string) }

    mutating func open(_ key: TreeKey?, priority: Scalar?) {
        begin(key)
        levels.append(
            Level(
                start: string.count, priority: form == .export ? priority : nil,
                elements: form == .plain ? [] : nil))
        string.append(UInt8(ascii: "{"))
    }

    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) {
        begin(key)
        let start = string.count
        if form == .export, let priority {
            string.append(contentsOf: "{\".value\":".utf8)
            TreeJSON.append(value, to: &string)
            string.append(contentsOf: ",\".priority\":".utf8)
            TreeJSON.append(priority, to: &string)
            string.append(UInt8(ascii: "}"))
        } else {
            TreeJSON.append(value, to: &string)
        }
        end(start)
    }

    mutating func close() {
        guard let level = levels.popLast() else { preconditionFailure("a node ends without a beginning") }
        if level.nextIndex != nil {
            string.append(UInt8(ascii: "]"))
        } else if let elements = level.elements, let last = elements.last, last.index < 2 * elements.count {
            writeArray(elements, from: level.start)
        } else {
            if let priority = level.priority {
                string.append(contentsOf: ",\".priority\":".utf8)
                TreeJSON.append(priority, to: &string)
            }
            string.append(UInt8(ascii: "}"))
        }
        end(level.start)
    }

    mutating func cut(to count: Int) { string.removeSubrange(count...) }

    mutating func appendNull() { string.append(contentsOf: "null".utf8) }

    /// Writes the name of a child.
    private mutating func begin(_ key: TreeKey?) {
        guard let key, !levels.isEmpty else { return }
        let last = levels.count - 1
        if !levels[last].isEmpty { string.append(UInt8(ascii: ",")) }
        levels[last].isEmpty = false
        if let next = levels[last].nextIndex {
            let index = key.arrayIndex ?? next
            for _ in next..<max(next, index) { string.append(contentsOf: "null,".utf8) }
            levels[last].nextIndex = index + 1
            return
        }
        if levels[last].elements != nil {
            levels[last].index = key.arrayIndex
            if levels[last].index == nil { levels[last].elements = nil }
        }
        TreeJSON.appendString(key.string, to: &string)
        string.append(UInt8(ascii: ":"))
    }

    /// Records the position of a child's value.
    private mutating func end(_ start: Int) {
        guard let last = levels.indices.last, levels[last].elements != nil, let index = levels[last].index else {
            return
        }
        levels[last].elements?.append((index, start..<string.count))
    }

    private mutating func writeArray(_ elements: [(index: Int, string: Range<Int>)], from start: Int) {
        var array = Self.array(of: elements, in: string)
        array[array.count - 1] = UInt8(ascii: "]")
        string.replaceSubrange(start..., with: array)
    }

    /// Elements of an array, with a comma behind the last.
    private static func array(of elements: [(index: Int, string: Range<Int>)], in string: [UInt8]) -> [UInt8] {
        var array: [UInt8] = [UInt8(ascii: "[")]
        var position = 0
        for (index, range) in elements {
            while position < index {
                array.append(contentsOf: "null,".utf8)
                position += 1
            }
            array.append(contentsOf: string[range])
            array.append(UInt8(ascii: ","))
            position += 1
        }
        return array
    }

    // MARK: Deciding

    /// The numbers of the open nodes, from the outermost, that can still become arrays.
    var undecided: [Int] { levels.indices.filter { levels[$0].elements != nil && !levels[$0].isEmpty } }

    /// Sets the form that an open node will have at its end.
    mutating func decide(_ number: Int, isArray: Bool) {
        guard let elements = levels[number].elements else { return }
        levels[number].elements = nil
        guard isArray else { return }
        // A child that is still open begins here; the name before it is no part of an array.
        let isChildOpen = number + 1 < levels.count
        let start = levels[number].start
        let end = isChildOpen ? levels[number + 1].start : string.count
        var array = Self.array(of: elements, in: string)
        var next = (elements.last?.index ?? -1) + 1
        if isChildOpen {
            let index = levels[number].index ?? next
            for _ in next..<max(next, index) { array.append(contentsOf: "null,".utf8) }
            next = index + 1
        } else {
            array.removeLast()
        }
        string.replaceSubrange(start..<end, with: array)
        levels[number].nextIndex = next
        let shift = array.count - (end - start)
        for inner in levels.indices where inner > number {
            levels[inner].start += shift
            guard let known = levels[inner].elements else { continue }
            levels[inner].elements = known.map {
                ($0.index, $0.string.lowerBound + shift..<$0.string.upperBound + shift)
            }
        }
    }
}

extension TreeView {
    /// Appends the JSON of the data at a location; `null` when there is none.
    /// - Throws: RESOURCE_EXHAUSTED when it is more than `Limits.treeReadSizeBytesMax`.
    package func appendJSON(at path: TreePath, to string: inout [UInt8], form: TreeJSON.Form) throws(Status) {
        let start = string.count
        var assembler = JSONAssembler(appendingTo: string, form: form)
        string = []
        defer { string = assembler.string }
        do throws(Status) {
            var walk = try SubtreeWalk(
                PathCode.location(path), in: snapshot, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
            try walk.run(&assembler)
        } catch {
            assembler.cut(to: start)
            throw error
        }
        if assembler.string.count == start { assembler.appendNull() }
    }
}
