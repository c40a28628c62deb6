import HearthHost
import HearthModel
import HearthNetwork

/// The body of a forward-channel request: a form with numbered messages.
///
/// `count` is the number of messages, `ofs` the number of the first, and `reqN___data__` carries message `ofs + N`. The
/// form of a handshake also has `headers`: those of the call, one per line.
package struct ForwardBody: Sendable {
    private(set) var headers: [HTTPHeader] = []
    /// In the order of their numbers.
    package private(set) var messages: [(number: Int64, bytes: [UInt8])] = []

    init() {}

    /// - Throws: INVALID_ARGUMENT when the body is not such a form.
    package init(_ body: [UInt8]) throws(Status) {
        var count: Int64?
        var offset: Int64 = 0
        var position = 0
        while let field = try Self.nextField(of: body, &position) {
            switch field.name {
            case "headers": headers = Self.headers(String(decoding: field.value, as: UTF8.self))
            case "count": count = try Self.number(field)
            case "ofs": offset = try Self.number(field)
            default:
                guard let index = Self.index(ofField: field.name) else { continue }
                if messages.count == Limits.webChannelMessagesMax {
                    throw .invalidArgument("A body has at most \(Limits.webChannelMessagesMax) messages.")
                }
                messages.append((index, field.value))
            }
        }
        if let count, count != messages.count {
            throw .invalidArgument("The body announces \(count) messages and has \(messages.count).")
        }
        for index in messages.indices { messages[index].number += offset }
        messages.sort { $0.number < $1.number }
    }

    /// N of `reqN___data__`; nil for other names.
    private static func index(ofField name: String) -> Int64? {
        guard name.hasPrefix("req"), name.hasSuffix("___data__") else { return nil }
        return decimal(name.dropFirst(3).dropLast(9))
    }

    private static func number(_ field: (name: String, value: [UInt8])) throws(Status) -> Int64 {
        guard let number = decimal(String(decoding: field.value, as: UTF8.self)) else {
            throw .invalidArgument("'\(field.name)' must be a number.")
        }
        return number
    }

    /// A number in the format of this protocol; nil when it is invalid, negative or beyond what a session can count.
    package static func decimal(_ string: some StringProtocol) -> Int64? {
        guard !string.isEmpty, string.utf8.count <= 15, string.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int64(string)
    }

    /// `Name:value` lines. Source: the `$httpHeaders` of WebChannel.
    static func headers(_ string: String) -> [HTTPHeader] {
        string.split(whereSeparator: \.isNewline).compactMap { line in
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            return HTTPHeader(line[..<colon].lowercased(), String(line[line.utf8.index(after: colon)...]))
        }
    }

    /// All known names are shorter.
    private static let nameBytesMax = 64

    /// The next field of a form with a known name. Other fields are not stored, because a body may have millions of
    /// them. Source: application/x-www-form-urlencoded of the URL standard.
    private static func nextField(
        of body: [UInt8], _ position: inout Int
    ) throws(Status) -> (name: String, value: [UInt8])? {
        while position < body.count {
            let start = position
            var equals: Int?
            while position < body.count, body[position] != UInt8(ascii: "&") {
                if equals == nil, body[position] == UInt8(ascii: "=") { equals = position }
                position += 1
            }
            let end = position
            position += 1
            let nameEnd = equals ?? end
            if nameEnd == start || nameEnd - start > nameBytesMax { continue }
            guard let name = URLCoding.decode(body[start..<nameEnd]) else { throw malformed }
            let string = String(decoding: name, as: UTF8.self)
            guard string == "headers" || string == "count" || string == "ofs" || index(ofField: string) != nil else {
                continue
            }
            guard let value = URLCoding.decode(equals.map { body[($0 + 1)..<end] } ?? []) else { throw malformed }
            return (string, value)
        }
        return nil
    }

    private static let malformed = Status.invalidArgument("The body is not a form: an escape is malformed.")
}
