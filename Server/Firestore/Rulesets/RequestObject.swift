import HearthHost
import HearthModel

/// A JSON object of a request whose members are known: any other is refused, as in Google's front end. Names may be spelled as in
/// JSON (`rulesetName`) or as in the proto (`ruleset_name`).
struct RequestObject {
    private var members: [String: Value] = [:]
    let path: String

    /// - Parameters:
    ///   - path: of the object in the request, for messages; empty for the request itself.
    ///   - known: the names of the members in JSON.
    /// - Throws: INVALID_ARGUMENT for what is no object, and for a member that is unknown or occurs twice.
    init(_ value: Value, at path: String = "", known: [String]) throws(Status) {
        self.path = path
        guard case .map(let map) = value else { throw Self.wrong(path, "an object") }
        let location = path.isEmpty ? "" : " at '\(path)'"
        for field in map.fields {
            let name = Self.camelCase(field.name)
            guard let found = known.first(where: { UTF8Order.equal($0, name) }) else {
                throw .invalidArgument(
                    "Invalid JSON payload received. Unknown name \"\(field.name)\"\(location): Cannot find field.")
            }
            if case .null = field.value { continue }
            if members.updateValue(field.value, forKey: found) != nil {
                throw .invalidArgument(
                    "Invalid JSON payload received. The name \"\(field.name)\"\(location) occurs more than once.")
            }
        }
    }

    /// - Throws: INVALID_ARGUMENT for a body that is not JSON.
    init(body: [UInt8], known: [String]) throws(Status) {
        // An empty body is an empty message.
        try self.init(body.isEmpty ? .map(MapValue()) : try PlainJSON.any(body), known: known)
    }

    private static func camelCase(_ name: String) -> String {
        let parts = name.utf8.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        if parts.count == 1 { return name }
        return parts.enumerated().map { index, part in
            let string = String(Substring(part))
            return index == 0 ? string : string.prefix(1).uppercased() + string.dropFirst()
        }.joined()
    }

    static func wrong(_ path: String, _ expected: String) -> Status {
        .invalidArgument("Invalid value\(path.isEmpty ? "" : " at '\(path)'"): expected \(expected).")
    }

    /// The path of a member in the request.
    func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    subscript(name: String) -> Value? { members[name] }

    /// - Returns: nil without the member.
    func string(_ name: String) throws(Status) -> String? {
        guard let value = members[name] else { return nil }
        guard case .string(let string) = value else { throw Self.wrong(path(of: name), "a string") }
        return string
    }

    func list(_ name: String) throws(Status) -> [Value]? {
        guard let value = members[name] else { return nil }
        guard case .array(let elements) = value else { throw Self.wrong(path(of: name), "a list") }
        return elements
    }

    func object(_ name: String, known: [String]) throws(Status) -> RequestObject? {
        guard let value = members[name] else { return nil }
        return try RequestObject(value, at: path(of: name), known: known)
    }
}
