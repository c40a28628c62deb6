import HearthModel

/// Reads JSON (RFC 8259) from bytes, a token at a time. Rejects invalid JSON, and also bytes that aren't UTF-8, escaped
/// surrogates without their pair, numbers beyond the finite doubles, and nesting beyond `Limits.treeNestingMax`.
struct JSONCursor {
    let bytes: UnsafeBufferPointer<UInt8>
    /// Lines and columns are counted from here.
    let start: Int
    let end: Int
    var index: Int

    init(_ bytes: UnsafeBufferPointer<UInt8>, in range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count, "a slice outside of its bytes")
        self.bytes = bytes
        start = range.lowerBound
        end = range.upperBound
        index = start
    }

    /// Exactly one value, and white space around it.
    mutating func whole<Value>(
        _ read: (inout JSONCursor) throws(TreeDataError) -> Value
    ) throws(TreeDataError) -> Value {
        skipSpace()
        let value = try read(&self)
        skipSpace()
        guard index == end else { throw .invalidJSON }
        return value
    }

    /// Zero at the end: no token begins with it.
    var byte: UInt8 { index < end ? bytes[index] : 0 }

    func position(of index: Int) -> JSONPosition { JSONPosition(of: index, in: bytes, from: start) }

    mutating func skipSpace() {
        while index < end {
            switch bytes[index] {
            case 0x20, 0x0A, 0x0D, 0x09: index += 1
            default: return
            }
        }
    }

    mutating func take(_ wanted: UInt8) throws(TreeDataError) {
        guard byte == wanted else { throw .invalidJSON }
        index += 1
    }

    mutating func takeWord(_ word: StaticString) throws(TreeDataError) {
        let count = word.utf8CodeUnitCount
        guard end - index >= count else { throw .invalidJSON }
        for offset in 0..<count where bytes[index + offset] != word.utf8Start[offset] { throw .invalidJSON }
        index += count
    }

    /// Calls `member` with the position of each name of an object, before its value; `member` reads the value.
    mutating func object(
        _ member: (inout JSONCursor, _ name: String, _ nameIndex: Int) throws(TreeDataError) -> Void
    ) throws(TreeDataError) {
        try take(UInt8(ascii: "{"))
        skipSpace()
        if byte == UInt8(ascii: "}") {
            index += 1
            return
        }
        while true {
            let nameIndex = index
            let name = try string()
            skipSpace()
            try take(UInt8(ascii: ":"))
            skipSpace()
            try member(&self, name, nameIndex)
            if try isEnd(UInt8(ascii: "}")) { return }
        }
    }

    /// Calls `element`, which reads a value, for each element of an array.
    mutating func array(
        _ element: (inout JSONCursor, _ position: Int) throws(TreeDataError) -> Void
    ) throws(TreeDataError) {
        try take(UInt8(ascii: "["))
        skipSpace()
        if byte == UInt8(ascii: "]") {
            index += 1
            return
        }
        var position = 0
        while true {
            try element(&self, position)
            position += 1
            if try isEnd(UInt8(ascii: "]")) { return }
        }
    }

    /// Behind a value: a comma, or the end of the container.
    private mutating func isEnd(_ closing: UInt8) throws(TreeDataError) -> Bool {
        skipSpace()
        let found = byte
        index += 1
        if found == closing { return true }
        guard found == UInt8(ascii: ",") else { throw .invalidJSON }
        skipSpace()
        return false
    }

    /// A value of any kind.
    mutating func value(nesting: Int = 0) throws(TreeDataError) -> JSONValue {
        switch byte {
        case UInt8(ascii: "{"):
            guard nesting < Limits.treeNestingMax else { throw .invalidJSON }
            var members: [(name: String, value: JSONValue)] = []
            try object { (cursor, name, _) throws(TreeDataError) in
                members.append((name, try cursor.value(nesting: nesting + 1)))
            }
            return .object(members)
        case UInt8(ascii: "["):
            guard nesting < Limits.treeNestingMax else { throw .invalidJSON }
            var elements: [JSONValue] = []
            try array { (cursor, _) throws(TreeDataError) in elements.append(try cursor.value(nesting: nesting + 1)) }
            return .array(elements)
        default: return JSONValue(try scalar())
        }
    }

    /// Anything but arrays and objects; nil for null.
    mutating func scalar() throws(TreeDataError) -> Scalar? {
        switch byte {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"):
            try takeWord("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try takeWord("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try takeWord("null")
            return nil
        default: return try number()
        }
    }
}
