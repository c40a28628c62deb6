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

    /// A duration: a whole number and its unit.
    func seconds(_ range: ClosedRange<Int>) throws(ToolFailure) -> Int {
        let digits = string.prefix { $0.isASCII && $0.isNumber }
        let units = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let number = Int(digits), let unit = units[String(string.dropFirst(digits.count))] else {
            throw failure("a whole number and s, m, h or d, such as 12h")
        }
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: unit)
        guard !isTooLarge, range.contains(seconds) else {
            throw failure("a duration from \(range.lowerBound)s to \(range.upperBound)s")
        }
        return seconds
    }

    func boolean() throws(ToolFailure) -> Bool {
        switch string {
        case "", "true", "1", "yes", "on": return true
        case "false", "0", "no", "off": return false
        default: throw failure("true or false")
        }
    }
}
