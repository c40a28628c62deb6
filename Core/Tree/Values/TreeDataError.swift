/// An error in data, a path or a query that a client sent.
package struct TreeDataError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message for the client. Where the service's own message is known, it is copied exactly: programs compare it.
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
}

extension TreeDataError {
    package static let invalidJSON = TreeDataError("Invalid data; couldn't parse JSON object, array, or value.")
    /// An update must be an object.
    package static let notAnObject = TreeDataError(
        "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
    package static let invalidPath = TreeDataError("Invalid path: Invalid token in path")

    static func invalidKey(_ position: JSONPosition) -> TreeDataError {
        TreeDataError(
            "Invalid data; couldn't parse key beginning at \(position). "
                + "Key value can't be empty or contain $ # [ ] / or .")
    }
}

/// A position in a JSON string, line and column from 1; columns count characters.
struct JSONPosition: CustomStringConvertible {
    let line: Int
    let column: Int

    init(of index: Int, in string: UnsafeRawBufferPointer, from start: Int) {
        var line = 1
        var column = 1
        for byte in string[start..<index] {
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        self.line = line
        self.column = column
    }

    var description: String { "\(line):\(column)" }
}
