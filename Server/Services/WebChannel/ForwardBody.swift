import HearthModel
import HearthNetwork

/// What a client sends in the body of a forward-channel request: a form with numbered messages.
///
/// `count` says how many messages there are, `ofs` the number of the first, and `reqN___data__` carries message `ofs + N`;
/// the form of a handshake has `headers` too, those of the call, one a line.
struct ForwardBody: Sendable {
    private(set) var headers: [HTTPHeader] = []
    /// In the order of their numbers.
    private(set) var messages: [(number: Int64, bytes: [UInt8])] = []

    init() {}

    /// - Throws: INVALID_ARGUMENT when the body isn't such a form.
    init(_ body: [UInt8]) throws(Status) {
        var count: Int64?
        var offset: Int64 = 0
        for field in try Self.fields(body) {
            switch field.name {
            case "headers": headers = Self.headers(String(decoding: field.value, as: UTF8.self))
            case "count": count = try Self.number(field)
            case "ofs": offset = try Self.number(field)
            default:
                guard let place = Self.place(field.name) else { continue }
                messages.append((place, field.value))
            }
        }
        if let count, count != messages.count {
            throw .invalidArgument("The body announces \(count) messages and has \(messages.count).")
        }
        for place in messages.indices { messages[place].number += offset }
        messages.sort { $0.number < $1.number }
    }

    /// N of `reqN___data__`; nil for other names.
    private static func place(_ name: String) -> Int64? {
        guard name.hasPrefix("req"), name.hasSuffix("___data__") else { return nil }
        return decimal(name.dropFirst(3).dropLast(9))
    }

    private static func number(_ field: (name: String, value: [UInt8])) throws(Status) -> Int64 {
        guard let number = decimal(String(decoding: field.value, as: UTF8.self)) else {
            throw .invalidArgument("'\(field.name)' must be a number.")
        }
        return number
    }

    /// A number as this protocol writes it; nil when it is none, negative or beyond what a session can count.
    static func decimal(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.count <= 15, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }

    /// `Name:value` lines. Source: the `$httpHeaders` of WebChannel.
    static func headers(_ text: String) -> [HTTPHeader] {
        text.split(whereSeparator: \.isNewline).compactMap { line in
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            return HTTPHeader(line[..<colon].lowercased(), String(line[line.utf8.index(after: colon)...]))
        }
    }

    /// The fields of a form. Source: application/x-www-form-urlencoded of the URL standard.
    private static func fields(_ body: [UInt8]) throws(Status) -> [(name: String, value: [UInt8])] {
        var fields: [(name: String, value: [UInt8])] = []
        for pair in body.split(separator: UInt8(ascii: "&")) {
            let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let value = equals < pair.endIndex ? pair[(equals + 1)...] : []
            guard let name = URLText.decode(pair[..<equals]), let value = URLText.decode(value) else {
                throw .invalidArgument("The body is no form: an escape is malformed.")
            }
            fields.append((String(decoding: name, as: UTF8.self), value))
        }
        return fields
    }
}
