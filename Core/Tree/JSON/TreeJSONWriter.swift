import HearthJSON

/// Writing JSON.
extension TreeJSON {
    /// - Parameter pretty: with one line per member, two spaces per level, in the service's own style.
    package static func append(
        _ node: Node, to string: inout [UInt8], form: Form, pretty: Bool = false
    ) {
        var writer = TreeJSONWriter(string: string, form: form, isPretty: pretty)
        string = []
        writer.write(node)
        string = writer.string
    }

    /// Writes a node without having its whole JSON in memory.
    /// - Parameter sink: takes a piece, and empties it.
    package static func write(_ node: Node, form: Form, _ sink: @escaping (inout [UInt8]) -> Void) {
        var writer = TreeJSONWriter(string: [], form: form, isPretty: false)
        writer.sink = sink
        writer.write(node)
        if !writer.string.isEmpty { sink(&writer.string) }
    }

    package static func append(_ value: JSONValue, to string: inout [UInt8]) {
        switch value {
        case .array(let elements):
            string.append(UInt8(ascii: "["))
            for (position, element) in elements.enumerated() {
                if position > 0 { string.append(UInt8(ascii: ",")) }
                append(element, to: &string)
            }
            string.append(UInt8(ascii: "]"))
        case .object(let members):
            string.append(UInt8(ascii: "{"))
            for (position, member) in members.enumerated() {
                if position > 0 { string.append(UInt8(ascii: ",")) }
                appendString(member.name, to: &string)
                string.append(UInt8(ascii: ":"))
                append(member.value, to: &string)
            }
            string.append(UInt8(ascii: "}"))
        default: append(value.scalar, to: &string)
        }
    }

    /// A leaf's value or a priority; nil is null.
    package static func append(_ scalar: Scalar?, to string: inout [UInt8]) {
        switch scalar {
        case nil: JSONTokens.appendNull(to: &string)
        case .bool(let value): JSONTokens.append(value, to: &string)
        case .integer(let value): JSONTokens.append(value, to: &string)
        case .double(let value): append(value, to: &string)
        case .string(let value): JSONTokens.append(value, to: &string)
        case .deferred(let value):
            string.append(contentsOf: "{\".sv\":".utf8)
            append(value.json, to: &string)
            string.append(UInt8(ascii: "}"))
        }
    }

    /// The shortest decimal form that reads as the same number; whole numbers below 2⁵³ without a fraction, as the
    /// service writes them.
    private static func append(_ value: Double, to string: inout [UInt8]) {
        precondition(value.isFinite, "no number of JSON")
        if value.magnitude < 0x1p53, let whole = Int64(exactly: value) {
            JSONTokens.append(whole, to: &string)
        } else {
            JSONTokens.append(value, to: &string)
        }
    }

    /// A string in quotes.
    package static func appendString(_ string: String, to output: inout [UInt8]) {
        JSONTokens.append(string, to: &output)
    }
}

extension Children {
    /// Whether the plain form is an array: all keys are indexes, and the largest is less than twice their number. In
    /// the order of keys the largest is the last, and if that and the first are no indexes, the others need not be
    /// checked.
    var isArray: Bool {
        guard let last = last?.key.arrayIndex, last < 2 * count else { return false }
        return allSatisfy { $0.key.arrayIndex != nil }
    }
}

private struct TreeJSONWriter {
    var string: [UInt8]
    let form: TreeJSON.Form
    let isPretty: Bool
    /// Receives pieces of the output; nil when all of it is returned at once.
    var sink: ((inout [UInt8]) -> Void)?
    /// The number of open objects; arrays don't indent.
    private var level = 0

    private static let pieceBytes = 64 << 10

    init(string: [UInt8], form: TreeJSON.Form, isPretty: Bool) {
        self.string = string
        self.form = form
        self.isPretty = isPretty
    }

    mutating func write(_ node: Node) {
        let priority = form == .export ? node.priority : nil
        guard let children = node.inner else {
            guard let priority else { return TreeJSON.append(node.value, to: &string) }
            beginObject()
            name(".value", isFirst: true)
            TreeJSON.append(node.value, to: &string)
            name(".priority", isFirst: false)
            TreeJSON.append(priority, to: &string)
            return endObject()
        }
        if form == .plain, children.isArray { return write(array: children) }
        beginObject()
        var isFirst = true
        for (key, child) in children {
            name(key.string, isFirst: isFirst)
            isFirst = false
            write(child)
            pour()
        }
        if let priority {
            name(".priority", isFirst: false)
            TreeJSON.append(priority, to: &string)
        }
        endObject()
    }

    private mutating func write(array children: Children) {
        string.append(UInt8(ascii: "["))
        var position = 0
        for (key, child) in children {
            while position < key.arrayIndex! {
                separate(isFirst: position == 0)
                JSONTokens.appendNull(to: &string)
                position += 1
            }
            separate(isFirst: position == 0)
            write(child)
            position += 1
            pour()
        }
        if isPretty { string.append(UInt8(ascii: " ")) }
        string.append(UInt8(ascii: "]"))
    }

    private mutating func pour() {
        if let sink, string.count >= Self.pieceBytes { sink(&string) }
    }

    private mutating func separate(isFirst: Bool) {
        if !isFirst { string.append(UInt8(ascii: ",")) }
        if isPretty { string.append(UInt8(ascii: " ")) }
    }

    private mutating func beginObject() {
        string.append(UInt8(ascii: "{"))
        level += 1
    }

    private mutating func endObject() {
        level -= 1
        if isPretty { newLine() }
        string.append(UInt8(ascii: "}"))
    }

    private mutating func name(_ name: String, isFirst: Bool) {
        if !isFirst { string.append(UInt8(ascii: ",")) }
        if isPretty { newLine() }
        TreeJSON.appendString(name, to: &string)
        string.append(contentsOf: (isPretty ? " : " : ":").utf8)
    }

    private mutating func newLine() {
        string.append(UInt8(ascii: "\n"))
        for _ in 0..<level { string.append(contentsOf: "  ".utf8) }
    }
}
