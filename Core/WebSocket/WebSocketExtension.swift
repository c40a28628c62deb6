/// One extension in `sec-websocket-extensions`. Source: RFC 6455, 9.1.
package struct WebSocketExtension: Equatable {
    var name: String
    var parameters: [(name: String, value: String?)]

    var hasDistinctParameters: Bool { Set(parameters.map(\.name)).count == parameters.count }

    package static func == (one: WebSocketExtension, other: WebSocketExtension) -> Bool {
        one.name == other.name
            && one.parameters.elementsEqual(other.parameters) { $0.name == $1.name && $0.value == $1.value }
    }

    /// All extensions of the fields, in order; nil when the syntax is invalid.
    package static func parse(_ fields: [String]) -> [WebSocketExtension]? {
        var extensions: [WebSocketExtension] = []
        for field in fields {
            var scanner = FieldScanner(field)
            repeat {
                // Empty list elements are ignored (RFC 9110, 5.6.1).
                if scanner.isAtSeparator { continue }
                guard let name = scanner.token() else { return nil }
                var element = WebSocketExtension(name: name, parameters: [])
                while scanner.take(UInt8(ascii: ";")) {
                    guard let parameter = scanner.token() else { return nil }
                    var value: String?
                    if scanner.take(UInt8(ascii: "=")) {
                        value = scanner.tokenOrQuoted()
                        guard value != nil else { return nil }
                    }
                    element.parameters.append((parameter, value))
                }
                extensions.append(element)
            } while scanner.take(UInt8(ascii: ","))
            guard scanner.isAtEnd else { return nil }
        }
        return extensions
    }
}

/// Reads the parts of a field's value, and skips spaces before each.
private struct FieldScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ string: String) { bytes = Array(string.utf8) }

    private mutating func skipSpaces() {
        while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 { position += 1 }
    }

    var isAtEnd: Bool {
        mutating get {
            skipSpaces()
            return position == bytes.count
        }
    }

    var isAtSeparator: Bool { mutating get { isAtEnd || bytes[position] == UInt8(ascii: ",") } }

    mutating func take(_ byte: UInt8) -> Bool {
        guard !isAtEnd, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    mutating func token() -> String? {
        skipSpaces()
        let start = position
        while position < bytes.count, FieldScanner.isTokenByte(bytes[position]) { position += 1 }
        return position > start ? String(decoding: bytes[start..<position], as: UTF8.self).lowercased() : nil
    }

    /// A quoted string must also be a token (RFC 6455, 9.1).
    mutating func tokenOrQuoted() -> String? {
        guard take(UInt8(ascii: "\"")) else { return token() }
        var value: [UInt8] = []
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            if bytes[position] == UInt8(ascii: "\\") { position += 1 }
            guard position < bytes.count, FieldScanner.isTokenByte(bytes[position]) else { return nil }
            value.append(bytes[position])
            position += 1
        }
        guard position < bytes.count, !value.isEmpty else { return nil }
        position += 1
        return String(decoding: value, as: UTF8.self)
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
