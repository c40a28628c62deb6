import HearthJSON
import HearthModel

/// Reads JSON token by token, with the errors of the Realtime Database.
///
/// Unlike proto3 JSON, whether strings are UTF-8 is checked one by one, when they are read: an envelope is split before
/// its parts are parsed, and a part that is malformed fails alone.
typealias TreeJSONReader = JSONLexer<TreeDataError>

extension TreeDataError: JSONReadingError {
    @inlinable package init(json error: JSONError) { self = .invalidJSON }
}

extension TreeJSONReader {
    /// Reads a document with one value.
    /// - Parameter range: of the string; all of it when nil.
    static func read<Value>(
        _ string: [UInt8], in range: Range<Int>?, _ body: (inout TreeJSONReader) throws(TreeDataError) -> Value
    ) throws(TreeDataError) -> Value {
        try string.withUnsafeBufferPointer { (bytes) throws(TreeDataError) in
            var reader = TreeJSONReader(
                UnsafeRawBufferPointer(bytes), in: range ?? 0..<bytes.count, depthMax: Limits.treeNestingMax)
            _ = reader.peek()
            let value = try body(&reader)
            try reader.endDocument()
            return value
        }
    }

    /// Lines and columns are counted from the start of the document.
    func lineAndColumn(of position: Int) -> JSONPosition { JSONPosition(of: position, in: bytes, from: start) }

    /// Calls `member` with the position of each name of an object, before its value; `member` reads the value.
    mutating func object(
        _ member: (inout TreeJSONReader, _ name: String, _ namePosition: Int) throws(TreeDataError) -> Void
    ) throws(TreeDataError) {
        try openContainer(UInt8(ascii: "{"))
        var isFirst = true
        while let name = try nextMember(&isFirst) {
            let string = try string(name)
            _ = peek()
            try member(&self, string, name.range.lowerBound - 1)
        }
    }

    /// Calls `element`, which reads a value, for each element of an array.
    mutating func array(
        _ element: (inout TreeJSONReader, _ index: Int) throws(TreeDataError) -> Void
    ) throws(TreeDataError) {
        try openContainer(UInt8(ascii: "["))
        var isFirst = true
        var index = 0
        while try nextElement(&isFirst) {
            _ = peek()
            try element(&self, index)
            index += 1
        }
    }

    /// Reads one value, which may be nested as deep as a document of its own.
    private mutating func nested<Value>(
        _ read: (inout TreeJSONReader) throws(TreeDataError) -> Value
    ) throws(TreeDataError) -> Value {
        let outerMax = depthMax
        depthMax = depth + Limits.treeNestingMax
        let value = try read(&self)
        depthMax = outerMax
        return value
    }

    /// Skips a value that is valid but for strings that are not UTF-8, and returns its range.
    mutating func skipPart() throws(TreeDataError) -> Range<Int> {
        try nested { (reader) throws(TreeDataError) in try reader.skipValue() }
    }

    /// A value of any kind.
    mutating func value() throws(TreeDataError) -> JSONValue {
        try nested { (reader) throws(TreeDataError) in try reader.anyValue() }
    }

    private mutating func anyValue() throws(TreeDataError) -> JSONValue {
        switch peek() {
        case UInt8(ascii: "{"):
            var members: [(name: String, value: JSONValue)] = []
            try object { (reader, name, _) throws(TreeDataError) in members.append((name, try reader.anyValue())) }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try array { (reader, _) throws(TreeDataError) in elements.append(try reader.anyValue()) }
            return .array(elements)
        default: return JSONValue(try scalar())
        }
    }

    /// Anything but arrays and objects; nil for null.
    mutating func scalar() throws(TreeDataError) -> Scalar? {
        switch peek() {
        case UInt8(ascii: "\""): return .string(try readString())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool(try takeBool() ?? false)
        case UInt8(ascii: "n"):
            _ = try takeNull()
            return nil
        default: break
        }
        // An integer when it has neither fraction nor exponent and fits, otherwise the nearest double.
        let number = try readNumber()
        if let integer = number.plainInt64 { return .integer(integer) }
        guard let double = Scalar.number(number.double) else { throw .invalidJSON }
        return double
    }
}
