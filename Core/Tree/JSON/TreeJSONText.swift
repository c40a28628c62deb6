/// Writing JSON.
extension TreeJSON {
    /// - Parameter pretty: with a line a member, two spaces a level, in the service's own style.
    package static func append(
        _ node: Node, to text: inout [UInt8], form: Form, pretty: Bool = false
    ) {
        var writer = TreeJSONWriter(text: text, form: form, isPretty: pretty)
        text = []
        writer.write(node)
        text = writer.text
    }

    /// Writes a node without having all of its text in memory.
    /// - Parameter sink: takes a piece, and empties it.
    package static func write(_ node: Node, form: Form, _ sink: @escaping (inout [UInt8]) -> Void) {
        var writer = TreeJSONWriter(text: [], form: form, isPretty: false)
        writer.sink = sink
        writer.write(node)
        if !writer.text.isEmpty { sink(&writer.text) }
    }

    package static func append(_ value: JSONValue, to text: inout [UInt8]) {
        switch value {
        case .array(let elements):
            text.append(UInt8(ascii: "["))
            for (position, element) in elements.enumerated() {
                if position > 0 { text.append(UInt8(ascii: ",")) }
                append(element, to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object(let members):
            text.append(UInt8(ascii: "{"))
            for (position, member) in members.enumerated() {
                if position > 0 { text.append(UInt8(ascii: ",")) }
                appendString(member.name, to: &text)
                text.append(UInt8(ascii: ":"))
                append(member.value, to: &text)
            }
            text.append(UInt8(ascii: "}"))
        default: append(value.scalar, to: &text)
        }
    }

    /// A leaf's value or a priority; nil is null.
    package static func append(_ scalar: Scalar?, to text: inout [UInt8]) {
        switch scalar {
        case nil: text.append(contentsOf: "null".utf8)
        case .bool(let value): text.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): text.append(contentsOf: value.description.utf8)
        case .double(let value): append(value, to: &text)
        case .string(let value): appendString(value, to: &text)
        case .deferred(let value):
            text.append(contentsOf: "{\".sv\":".utf8)
            append(value.json, to: &text)
            text.append(UInt8(ascii: "}"))
        }
    }

    /// The shortest text that reads as the same number; whole numbers below 2⁵³ without a fraction.
    private static func append(_ value: Double, to text: inout [UInt8]) {
        precondition(value.isFinite, "no number of JSON")
        if value.magnitude < 0x1p53, let whole = Int64(exactly: value) {
            text.append(contentsOf: whole.description.utf8)
        } else {
            text.append(contentsOf: value.description.utf8)
        }
    }

    /// A text in quotes.
    package static func appendString(_ string: String, to text: inout [UInt8]) {
        var string = string
        text.append(UInt8(ascii: "\""))
        string.withUTF8 { bytes in
            var start = 0
            for index in bytes.indices {
                let byte = bytes[index]
                guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
                text.append(contentsOf: bytes[start..<index])
                appendEscape(byte, to: &text)
                start = index + 1
            }
            text.append(contentsOf: bytes[start...])
        }
        text.append(UInt8(ascii: "\""))
    }

    private static func appendEscape(_ byte: UInt8, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: text.append(UInt8(ascii: "b"))
        case 0x0C: text.append(UInt8(ascii: "f"))
        case 0x0A: text.append(UInt8(ascii: "n"))
        case 0x0D: text.append(UInt8(ascii: "r"))
        case 0x09: text.append(UInt8(ascii: "t"))
        case 0..<0x20:
            text.append(contentsOf: "u00".utf8)
            text.append(hexadecimalDigits[Int(byte >> 4)])
            text.append(hexadecimalDigits[Int(byte & 15)])
        default: text.append(byte)
        }
    }
}

let hexadecimalDigits = Array("0123456789abcdef".utf8)

extension Children {
    /// Whether the plain form is an array: all keys are indexes, and the biggest is less than twice their number. In the
    /// order of keys the biggest is the last, and if that and the first are none the rest needn't be looked at.
    var isArray: Bool {
        guard let last = last?.key.arrayIndex, last < 2 * count else { return false }
        return allSatisfy { $0.key.arrayIndex != nil }
    }
}

private struct TreeJSONWriter {
    var text: [UInt8]
    let form: TreeJSON.Form
    let isPretty: Bool
    /// Takes pieces of the text; nil when all of it is wanted at once.
    var sink: ((inout [UInt8]) -> Void)?
    /// Objects around; arrays don't indent.
    private var level = 0

    private static let pieceBytes = 64 << 10

    init(text: [UInt8], form: TreeJSON.Form, isPretty: Bool) {
        self.text = text
        self.form = form
        self.isPretty = isPretty
    }

    mutating func write(_ node: Node) {
        let priority = form == .export ? node.priority : nil
        guard let children = node.inner else {
            guard let priority else { return TreeJSON.append(node.value, to: &text) }
            beginObject()
            name(".value", isFirst: true)
            TreeJSON.append(node.value, to: &text)
            name(".priority", isFirst: false)
            TreeJSON.append(priority, to: &text)
            return endObject()
        }
        if form == .plain, children.isArray { return write(array: children) }
        beginObject()
        var isFirst = true
        for (key, child) in children {
            name(key.text, isFirst: isFirst)
            isFirst = false
            write(child)
            pour()
        }
        if let priority {
            name(".priority", isFirst: false)
            TreeJSON.append(priority, to: &text)
        }
        endObject()
    }

    private mutating func write(array children: Children) {
        text.append(UInt8(ascii: "["))
        var position = 0
        for (key, child) in children {
            while position < key.arrayIndex! {
                separate(isFirst: position == 0)
                text.append(contentsOf: "null".utf8)
                position += 1
            }
            separate(isFirst: position == 0)
            write(child)
            position += 1
            pour()
        }
        if isPretty { text.append(UInt8(ascii: " ")) }
        text.append(UInt8(ascii: "]"))
    }

    private mutating func pour() {
        if let sink, text.count >= Self.pieceBytes { sink(&text) }
    }

    private mutating func separate(isFirst: Bool) {
        if !isFirst { text.append(UInt8(ascii: ",")) }
        if isPretty { text.append(UInt8(ascii: " ")) }
    }

    private mutating func beginObject() {
        text.append(UInt8(ascii: "{"))
        level += 1
    }

    private mutating func endObject() {
        level -= 1
        if isPretty { newLine() }
        text.append(UInt8(ascii: "}"))
    }

    private mutating func name(_ name: String, isFirst: Bool) {
        if !isFirst { text.append(UInt8(ascii: ",")) }
        if isPretty { newLine() }
        TreeJSON.appendString(name, to: &text)
        text.append(contentsOf: (isPretty ? " : " : ":").utf8)
    }

    private mutating func newLine() {
        text.append(UInt8(ascii: "\n"))
        for _ in 0..<level { text.append(contentsOf: "  ".utf8) }
    }
}
