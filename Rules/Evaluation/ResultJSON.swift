import HearthModel

extension RulesResult {
    /// The value in the form of the emulator's coverage report: `{"boolValue":true}`. Long values are truncated.
    package var json: String {
        var budget = RulesLimits.reportedValueBytesMax
        return evaluation.json(of: value, &budget)
    }

    /// The value as plain JSON where it is a string, a number, a Boolean or null; any other in the form of `json`.
    package var plainJSON: String {
        switch value {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .int(let value): "\(value)"
        case .float(let value) where value.isFinite: "\(value)"
        case .string(let string): JSONString.quoted(string.cut(bytesMax: RulesLimits.reportedValueBytesMax))
        default: json
        }
    }
}

extension Evaluation {
    /// - Parameter budget: the remaining number of bytes; the rest of the value is omitted.
    func json(of value: RuleValue, _ budget: inout Int) -> String {
        budget -= 16
        switch value {
        case .null: return "{\"nullValue\":null}"
        case .bool(let value): return "{\"boolValue\":\(value)}"
        case .int(let value): return "{\"intValue\":\"\(value)\"}"
        case .float(let value):
            return value.isFinite ? "{\"floatValue\":\(value)}" : "{\"floatValue\":\"\(Decimal.java(value))\"}"
        case .string(let string):
            let cut = string.cut(bytesMax: budget)
            budget -= cut.utf8.count
            return "{\"stringValue\":\(JSONString.quoted(cut))}"
        case .bytes(let bytes):
            return "{\"bytesValue\":\"\(Hexadecimal.string(Array(bytes.prefix(max(budget, 0) / 2))))\"}"
        case .timestamp(let time): return "{\"timestampValue\":\"\(time.string)\"}"
        case .duration(let time): return "{\"durationValue\":\"\(time.seconds)s\"}"
        case .latlng(let point):
            return "{\"latlngValue\":{\"latitude\":\(point.point.latitude),\"longitude\":\(point.point.longitude)}}"
        case .path(let path): return "{\"pathValue\":\(JSONString.quoted(path.string.cut(bytesMax: budget)))}"
        case .list(let list): return elements(list.count, "listValue", &budget) { list[$0] }
        case .set(let set): return elements(set.count, "setValue", &budget) { set.elements[$0] }
        case .vector(let values): return elements(values.count, "vectorValue", &budget) { .float(values[$0]) }
        case .map(let map): return members(map, &budget)
        case .mapDiff, .constraint: return "{\"\(value.typeName)Value\":{}}"
        case .error(let failure):
            let message = failure.string.map { "\"causeMessage\":\(JSONString.quoted($0.cut(bytesMax: 200)))" } ?? ""
            return "{\"undefined\":{\(message)}}"
        }
    }

    private func elements(
        _ count: Int, _ name: String, _ budget: inout Int, _ element: (Int) -> RuleValue
    ) -> String {
        var parts: [String] = []
        for index in 0..<count where budget > 0 { parts.append(json(of: element(index), &budget)) }
        return "{\"\(name)\":{\"values\":[\(parts.joined(separator: ","))]}}"
    }

    private func members(_ map: RuleMap, _ budget: inout Int) -> String {
        var parts: [String] = []
        for entry in entries(of: map) where budget > 0 {
            let name = entry.name.cut(bytesMax: budget)
            budget -= name.utf8.count
            parts.append("\(JSONString.quoted(name)):\(json(of: entry.value, &budget))")
        }
        return "{\"mapValue\":{\"fields\":{\(parts.joined(separator: ","))}}}"
    }
}

extension RuleTime {
    /// An instant in the form of RFC 3339.
    var string: String {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let date = CivilDate(daysSince1970: days)
        let second = seconds - days * 86_400
        func padded(_ number: Int64, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let fraction = nanoseconds == 0 ? "" : "." + padded(Int64(nanoseconds), 9)
        return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
            + "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))\(fraction)Z"
    }
}
