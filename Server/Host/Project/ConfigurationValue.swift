import HearthJSON
import HearthModel
import HearthWire

/// A JSON file written by a person: `hearth.json`, `firebase.json`, `firestore.indexes.json`.
///
/// Each value knows its position, so that an error names the file, the line and the member. Comments (`//` and `/* */`)
/// are allowed, because the Firebase tools write them into the files that they create.
package struct ConfigurationValue: Sendable {
    package struct Member: Sendable {
        package var name: String
        package var value: ConfigurationValue
    }

    package enum Content: Sendable {
        case null
        case boolean(Bool)
        case number(Double)
        case string(String)
        case array([ConfigurationValue])
        case object([Member])

        /// With an article, for messages.
        var kind: String {
            switch self {
            case .null: "null"
            case .boolean: "a boolean"
            case .number: "a number"
            case .string: "a string"
            case .array: "a list"
            case .object: "an object"
            }
        }
    }

    package var content: Content
    /// The file's name as passed by the caller.
    let file: String
    /// `indexes[0].fields[1].order`; empty for the root.
    let path: String
    let line: Int
    let column: Int

    /// - Throws: INVALID_ARGUMENT with file, line and column where the file is not JSON.
    package init(parsing string: [UInt8], file: String) throws(Status) {
        let bytes = Self.withoutComments(Array(TextFile.withoutMark(string[...])))
        var result: Result<ConfigurationValue, Status>?
        bytes.withUnsafeBytes { buffer in
            do throws(Status) {
                var parser = try ConfigurationParser(buffer, file: file)
                result = .success(try parser.parse())
            } catch {
                result = .failure(error)
            }
        }
        guard let result else { throw .internalError("\(file) was not read.") }
        self = try result.get()
    }

    init(content: Content, file: String, path: String, line: Int, column: Int) {
        self.content = content
        self.file = file
        self.path = path
        self.line = line
        self.column = column
    }

    /// Comments become spaces, so that positions do not change.
    private static func withoutComments(_ string: [UInt8]) -> [UInt8] {
        let slash = UInt8(ascii: "/")
        let star = UInt8(ascii: "*")
        var result = string
        var index = 0
        var isInString = false
        while index < result.count {
            let byte = result[index]
            if isInString {
                if byte == UInt8(ascii: "\\") { index += 1 } else if byte == UInt8(ascii: "\"") { isInString = false }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == slash, index + 1 < result.count, result[index + 1] == slash {
                while index < result.count, result[index] != UInt8(ascii: "\n") {
                    result[index] = UInt8(ascii: " ")
                    index += 1
                }
            } else if byte == slash, index + 1 < result.count, result[index + 1] == star {
                var end = index + 2
                while end + 1 < result.count, !(result[end] == star && result[end + 1] == slash) { end += 1 }
                // The parser reports a comment that is never closed.
                guard end + 1 < result.count else { return result }
                for offset in index...(end + 1) where result[offset] != UInt8(ascii: "\n") {
                    result[offset] = UInt8(ascii: " ")
                }
                index = end + 1
            }
            index += 1
        }
        return result
    }

    // MARK: Taking values

    /// An error about this value.
    package func failure(_ reason: String) -> Status {
        .invalidArgument("\(file):\(line):\(column): \(path.isEmpty ? "" : path + ": ")\(reason)")
    }

    private func expected(_ what: String) -> Status { failure("Expected \(what), found \(content.kind).") }

    package func members() throws(Status) -> [Member] {
        guard case .object(let members) = content else { throw expected("an object") }
        return members
    }

    /// The value of a member; nil when it is absent or null.
    package func member(_ name: String) throws(Status) -> ConfigurationValue? {
        guard let value = try members().last(where: { UTF8Order.equal($0.name, name) })?.value else { return nil }
        if case .null = value.content { return nil }
        return value
    }

    package func elements() throws(Status) -> [ConfigurationValue] {
        guard case .array(let elements) = content else { throw expected("a list") }
        return elements
    }

    package func string() throws(Status) -> String {
        guard case .string(let string) = content else { throw expected("a string") }
        return string
    }

    /// The value of a setting that Firebase's tools take for absent: they test most members as JavaScript does.
    package var isFalse: Bool {
        switch content {
        case .null, .boolean(false), .number(0), .string(""): true
        default: false
        }
    }

    package func boolean() throws(Status) -> Bool {
        guard case .boolean(let value) = content else { throw expected("true or false") }
        return value
    }

    package func integer(_ range: ClosedRange<Int>) throws(Status) -> Int {
        guard case .number(let number) = content else { throw expected("a number") }
        guard let integer = Int(exactly: number), range.contains(integer) else {
            throw failure("Expected a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return integer
    }
}

/// Builds the tree, and tracks the path to the current value.
private struct ConfigurationParser {
    private var reader: JSONReader
    private let file: String
    /// The last position that was located, its line, and its column: the next one is counted from there.
    private var located = (position: 0, line: 1, column: 1)

    init(_ bytes: UnsafeRawBufferPointer, file: String) throws(Status) {
        self.file = file
        do throws(Status) {
            reader = try JSONReader(bytes)
        } catch {
            throw .invalidArgument("\(file): The file is not valid UTF-8.")
        }
    }

    mutating func parse() throws(Status) -> ConfigurationValue {
        do throws(Status) {
            let value = try self.value("")
            try reader.endDocument()
            return value
        } catch {
            let (line, column) = location(of: reader.position)
            let isEnd = reader.position >= reader.bytes.count
            throw .invalidArgument(
                "\(file):\(line):\(column): This is not valid JSON: \(isEnd ? "the text ends too early" : "unexpected text here")."
            )
        }
    }

    /// - Parameter position: not before that of the last call.
    private mutating func location(of position: Int) -> (line: Int, column: Int) {
        let end = min(position, reader.bytes.count)
        while located.position < end {
            let byte = reader.bytes[located.position]
            located.position += 1
            if byte == UInt8(ascii: "\n") {
                located.line += 1
                located.column = 1
            } else if byte & 0xC0 != 0x80 {
                // Columns are counted in characters, as editors do; continuation bytes of UTF-8 are no characters.
                located.column += 1
            }
        }
        return (located.line, located.column)
    }

    private mutating func value(_ path: String) throws(Status) -> ConfigurationValue {
        let byte = reader.peek()
        let (line, column) = location(of: reader.position)
        return ConfigurationValue(
            content: try content(byte, path), file: file, path: path, line: line, column: column)
    }

    private mutating func content(_ byte: UInt8?, _ path: String) throws(Status) -> ConfigurationValue.Content {
        switch byte {
        case UInt8(ascii: "{"):
            try reader.openContainer(UInt8(ascii: "{"))
            var members: [ConfigurationValue.Member] = []
            var isFirst = true
            while let key = try reader.nextMember(&isFirst) {
                let name = try reader.string(key)
                members.append(.init(name: name, value: try value(path.isEmpty ? name : "\(path).\(name)")))
            }
            return .object(members)
        case UInt8(ascii: "["):
            try reader.openContainer(UInt8(ascii: "["))
            var elements: [ConfigurationValue] = []
            var isFirst = true
            while try reader.nextElement(&isFirst) { elements.append(try value("\(path)[\(elements.count)]")) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try reader.readString())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean(try reader.takeBool() ?? false)
        case UInt8(ascii: "n"):
            _ = try reader.takeNull()
            return .null
        default:
            return .number(try reader.readNumber().double)
        }
    }
}
