/// An answer with a message that is in a file.
struct LargeScript: Sendable {
    let head: [UInt8]
    let body: LargeJSON
    let tail: [UInt8]
    /// Whether the message is inside a string.
    let isQuoted: Bool

    init(_ message: LargeMessage, before: [UInt8], after: [UInt8], isQuoted: Bool) {
        head = before + (isQuoted ? Self.quoted(message.head) : message.head)
        body = message.body
        tail = (isQuoted ? Self.quoted(message.tail) : message.tail) + after
        self.isQuoted = isQuoted
    }

    /// JSON, or a part of it, escaped for quotes. It contains no control characters.
    static func quoted(_ json: [UInt8]) -> [UInt8] {
        var string: [UInt8] = []
        string.reserveCapacity(json.count + json.count / 8)
        for byte in json {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { string.append(UInt8(ascii: "\\")) }
            string.append(byte)
        }
        return string
    }
}
