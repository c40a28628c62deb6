import HearthToolSupport

/// One setting's value and its source.
struct Origin: Sendable {
    var string: String
    /// `--port`, `HEARTH_PORT`, `hearth.json:3:11: port`
    var source: String
    var code: ToolFailure.Code

    func failure(_ expected: String) -> ToolFailure {
        ToolFailure(code, "\(source): expected \(expected), found \"\(string)\".")
    }

    func integer(_ range: ClosedRange<Int>) throws(ToolFailure) -> Int {
        guard let number = Int(string), range.contains(number) else {
            throw failure("a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func boolean() throws(ToolFailure) -> Bool {
        switch string {
        case "", "true", "1", "yes", "on": return true
        case "false", "0", "no", "off": return false
        default: throw failure("true or false")
        }
    }
}
