import HearthHost
import HearthModel

/// The fields of an HTML form, as `application/x-www-form-urlencoded` or `multipart/form-data`. Source: RFC 7578.
struct RequestForm {
    private var fields: [String: String] = [:]
    private static let fieldsMax = 100

    /// - Returns: nil for another type, and for what is not such a form.
    init?(_ body: [UInt8], contentType: String?) {
        let parts = (contentType ?? "").split(separator: ";").map { Self.trimmed($0) }
        switch parts.first?.lowercased() {
        case "multipart/form-data":
            let boundary = parts.dropFirst().first { $0.lowercased().hasPrefix("boundary=") }
            guard let boundary, readParts(body, String(boundary.dropFirst("boundary=".utf8.count))) else { return nil }
        case "application/x-www-form-urlencoded":
            guard let string = String(validating: body, as: UTF8.self), let pairs = URLCoding.parameters(string),
                pairs.count <= Self.fieldsMax
            else { return nil }
            for (name, value) in pairs { fields[name] = value }
        default: return nil
        }
    }

    subscript(name: String) -> String? { fields[name] }

    private static func trimmed(_ string: some StringProtocol) -> String {
        String(string.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }

    private mutating func readParts(_ body: [UInt8], _ given: String) -> Bool {
        let isQuoted = given.hasPrefix("\"") && given.hasSuffix("\"") && given.utf8.count >= 2
        let boundary = Array((isQuoted ? String(given.dropFirst().dropLast()) : given).utf8)
        guard (1...70).contains(boundary.count) else { return false }
        let line = Array("--".utf8) + boundary
        guard body.starts(with: line) else { return false }
        var rest = body[line.count...]
        for _ in 0..<Self.fieldsMax {
            if rest.starts(with: "--".utf8) { return true }
            guard rest.starts(with: "\r\n".utf8), let end = Self.find(Array("\r\n".utf8) + line, in: rest.dropFirst(2))
            else { return false }
            let part = rest[(rest.startIndex + 2)..<end]
            guard let head = Self.find(Array("\r\n\r\n".utf8), in: part),
                let name = Self.name(part[..<head]),
                let value = String(validating: part[(head + 4)...], as: UTF8.self)
            else { return false }
            fields[name] = value
            rest = rest[(end + 2 + line.count)...]
        }
        return false
    }

    /// The name in `Content-Disposition: form-data; name="…"`.
    private static func name(_ head: ArraySlice<UInt8>) -> String? {
        guard let string = String(validating: head, as: UTF8.self) else { return nil }
        for line in string.split(separator: "\r\n") where line.lowercased().hasPrefix("content-disposition:") {
            for attribute in line.split(separator: ";").map({ trimmed($0) }) where attribute.hasPrefix("name=\"") {
                return String(attribute.dropFirst("name=\"".utf8.count).dropLast())
            }
        }
        return nil
    }

    private static func find(_ needle: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= needle.count, let first = needle.first else { return nil }
        var start = bytes.startIndex
        while let index = bytes[start...].firstIndex(of: first) {
            if bytes[index...].starts(with: needle) { return index }
            start = index + 1
        }
        return nil
    }
}
