import HearthHost
import HearthJSON
import HearthModel

extension ConfigurationValue {
    /// - Throws: INVALID_ARGUMENT when there is no such member.
    func required(_ name: String) throws(Status) -> ConfigurationValue {
        guard let member = try member(name) else { throw failure("\"\(name)\" is missing.") }
        return member
    }

    /// Has what fails name this value.
    func located<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) {
            return try body()
        } catch {
            throw failure(error.message)
        }
    }

    /// The value as JSON without comments and white space. Of members of one name there is the last, which is in force.
    /// - Parameter without: names of an object's own members that are left out.
    package func appendJSON(to json: inout [UInt8], without: Set<String> = []) {
        switch content {
        case .null: json += Array("null".utf8)
        case .boolean(let flag): json += Array((flag ? "true" : "false").utf8)
        case .number(let number):
            let string = number.description
            json += Array((string.hasSuffix(".0") ? String(string.dropLast(2)) : string).utf8)
        case .string(let string): JSONTokens.append(string, to: &json)
        case .array(let elements):
            json.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                element.appendJSON(to: &json)
            }
            json.append(UInt8(ascii: "]"))
        case .object(let members):
            json.append(UInt8(ascii: "{"))
            var last: [String: Int] = [:]
            for (index, member) in members.enumerated() { last[member.name] = index }
            var isFirst = true
            for (index, member) in members.enumerated()
            where last[member.name] == index && !without.contains(member.name) {
                if !isFirst { json.append(UInt8(ascii: ",")) }
                isFirst = false
                JSONTokens.append(member.name, to: &json)
                json.append(UInt8(ascii: ":"))
                member.value.appendJSON(to: &json)
            }
            json.append(UInt8(ascii: "}"))
        }
    }
}
