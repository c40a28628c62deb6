import HearthHost
import HearthJSON

extension ConfigurationValue {
    /// The value as JSON without comments and white space.
    package func appendJSON(to json: inout [UInt8]) {
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
            for (index, member) in members.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                JSONTokens.append(member.name, to: &json)
                json.append(UInt8(ascii: ":"))
                member.value.appendJSON(to: &json)
            }
            json.append(UInt8(ascii: "}"))
        }
    }
}
