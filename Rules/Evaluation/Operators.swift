import HearthModel

import Glibc

/// Operators on values.
enum Operators {
    /// The same comparison with exchanged sides.
    static func mirrored(_ comparison: BinaryOperator) -> BinaryOperator {
        switch comparison {
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        default: comparison
        }
    }

    /// A comparison with a field of a query's results: it must hold for all of them, or for none.
    static func decide(
        _ constraint: RuleConstraint, _ comparison: BinaryOperator, _ value: RuleValue, _ evaluation: Evaluation
    ) -> RuleValue {
        if case .constraint = value {
            return .failure(
                .type(
                    received: "constraint",
                    expected: "bool,duration,float,int,latlng,map,null,string,bytes,timestamp,path,list,vector,set"))
        }
        // A map of filtered fields may look equal to a whole map in an exclusion.
        if evaluation.isOfPartialData, value.isOpen { return .failure(.unprovable) }
        return constraint.decide(comparison, value, evaluation).map { .bool($0) } ?? .failure(.unprovable)
    }

    // MARK: Order

    private static let comparable =
        ["string", "bytes", "int", "float", "duration", "timestamp"]

    static func compare(_ left: RuleValue, _ right: RuleValue, _ comparison: BinaryOperator) -> RuleValue {
        guard let order = RuleOrder.compare(left, right) else {
            let symbol = comparison.rawValue
            let expected =
                comparable.map { "\($0) \(symbol) \($0)" } + ["constraint \(symbol) any", "any \(symbol) constraint"]
            return .failure(
                .unsupported(
                    received: "\(left.typeName) \(symbol) \(right.typeName)", expected: expected.joined(separator: ", ")
                )
            )
        }
        if isNaN(left) || isNaN(right) { return .bool(false) }
        switch comparison {
        case .less: return .bool(order < 0)
        case .lessOrEqual: return .bool(order <= 0)
        case .greater: return .bool(order > 0)
        default: return .bool(order >= 0)
        }
    }

    private static func isNaN(_ value: RuleValue) -> Bool {
        if case .float(let value) = value { value.isNaN } else { false }
    }

    // MARK: Arithmetic

    static func calculate(
        _ left: RuleValue, _ right: RuleValue, _ operation: BinaryOperator, _ evaluation: Evaluation
    ) -> RuleValue {
        switch (left, right) {
        case (.int(let first), .int(let second)): return integers(first, second, operation)
        case (.int(let first), .float(let second)): return floats(Double(first), second, operation)
        case (.float(let first), .int(let second)): return floats(first, Double(second), operation)
        case (.float(let first), .float(let second)): return floats(first, second, operation)
        case (.string(let first), .string(let second)) where operation == .plus:
            return evaluation.string(first + second)
        default: return times(left, right, operation) ?? unsupported(left, right, operation)
        }
    }

    private static func integers(_ left: Int64, _ right: Int64, _ operation: BinaryOperator) -> RuleValue {
        let result: (partialValue: Int64, overflow: Bool)
        switch operation {
        case .plus: result = left.addingReportingOverflow(right)
        case .minus: result = left.subtractingReportingOverflow(right)
        case .times: result = left.multipliedReportingOverflow(by: right)
        case .divide:
            if right == 0 { return .failure(.divideByZero) }
            result = left.dividedReportingOverflow(by: right)
        default:
            if right == 0 { return .failure(.divideByZero) }
            // The remainder of the least integer and -1 is 0, although the quotient overflows.
            result = (right == -1 ? 0 : left % right, false)
        }
        return result.overflow ? .failure(.integerOverflow) : .int(result.partialValue)
    }

    private static func floats(_ left: Double, _ right: Double, _ operation: BinaryOperator) -> RuleValue {
        switch operation {
        case .plus: .float(left + right)
        case .minus: .float(left - right)
        case .times: .float(left * right)
        case .divide: .float(left / right)
        default: .float(fmod(left, right))
        }
    }

    /// Sums and differences of instants and durations.
    private static func times(_ left: RuleValue, _ right: RuleValue, _ operation: BinaryOperator) -> RuleValue? {
        let sign: Int64
        switch operation {
        case .plus: sign = 1
        case .minus: sign = -1
        default: return nil
        }
        switch (left, right) {
        case (.timestamp(let time), .duration(let length)): return sum(time, length, sign, RuleTime.timestamp)
        case (.duration(let length), .timestamp(let time)) where sign > 0:
            return sum(time, length, sign, RuleTime.timestamp)
        case (.duration(let first), .duration(let second)), (.timestamp(let first), .timestamp(let second)):
            if case .timestamp = left, sign > 0 { return nil }
            return sum(first, second, sign, RuleTime.duration, isDuration: true)
        default: return nil
        }
    }

    private static func sum(
        _ left: RuleTime, _ right: RuleTime, _ sign: Int64, _ make: (Int64, Int64) -> RuleTime?,
        isDuration: Bool = false
    ) -> RuleValue {
        let time = make(
            left.seconds + sign * right.seconds, Int64(left.nanoseconds) + sign * Int64(right.nanoseconds))
        guard let time else { return isDuration ? Conversion.invalidDuration : Conversion.invalidTimestamp }
        return isDuration ? .duration(time) : .timestamp(time)
    }

    private static func unsupported(
        _ left: RuleValue, _ right: RuleValue, _ operation: BinaryOperator
    ) -> RuleValue {
        let pairs: [(String, String)] =
            switch operation {
            case .plus:
                [
                    ("int", "int"), ("float", "float"), ("string", "string"), ("duration", "duration"),
                    ("duration", "timestamp"), ("timestamp", "duration"),
                ]
            case .minus:
                [
                    ("int", "int"), ("float", "float"), ("duration", "duration"), ("timestamp", "duration"),
                    ("timestamp", "timestamp"),
                ]
            default: [("int", "int"), ("float", "float")]
            }
        let symbol = operation.rawValue
        return .failure(
            .unsupported(
                received: "\(left.typeName) \(symbol) \(right.typeName)",
                expected: pairs.map { "\($0) \(symbol) \($1)" }.joined(separator: ", ")))
    }

    // MARK: in

    static func contains(_ container: RuleValue, _ element: RuleValue, _ evaluation: Evaluation) -> RuleValue {
        if evaluation.isOfPartialData, let result = containsOpen(container, element, evaluation) { return result }
        switch container {
        case .list(let list): return .bool(Self.list(list, contains: element, evaluation))
        case .set(let set): return .bool(set.contains(element, evaluation))
        case .map(let map):
            guard case .string(let name) = element else {
                return .failure(
                    .unsupported(received: "map.in(\(element.typeName))", expected: "map.in(string)"))
            }
            return .bool(evaluation.member(named: name, of: map) != nil)
        case .constraint(let constraint):
            let isKnown = constraint.contained.contains { evaluation.identical($0, element) }
            return isKnown ? .bool(true) : .failure(.unprovable)
        case .null: return .failure(.nullValue)
        default: return .failure(.functionNotFound("in"))
        }
    }

    /// `in` where the container or the element is only partly known; nil where that makes no difference.
    private static func containsOpen(
        _ container: RuleValue, _ element: RuleValue, _ evaluation: Evaluation
    ) -> RuleValue? {
        let elements: [RuleValue]
        switch container {
        case .map(let map):
            guard map.isPartial, case .string(let name) = element else { return nil }
            return evaluation.member(named: name, of: map) == nil ? .failure(.unprovable) : .bool(true)
        case .constraint: return element.isOpen ? .failure(.unprovable) : nil
        case .list(let list):
            guard element.isOpen || container.isOpen else { return nil }
            elements = list.elements
        case .set(let set):
            guard element.isOpen || container.isOpen else { return nil }
            elements = set.elements
        default: return nil
        }
        guard evaluation.work(elements.count) else { return evaluation.abort() }
        var isKnown = true
        for candidate in elements {
            switch evaluation.decideEqual(candidate, element) {
            // `in` distinguishes 1 and 1.0, and a filter does not: equality with an open value proves nothing.
            case true? where !candidate.isOpen && !element.isOpen: return .bool(true)
            case false?: break
            default: isKnown = false
            }
        }
        return isKnown ? .bool(false) : .failure(.unprovable)
    }

    static func list(_ list: RuleList, contains element: RuleValue, _ evaluation: Evaluation) -> Bool {
        guard evaluation.work(list.count) else { return false }
        for index in 0..<list.count where evaluation.identical(list[index], element) { return true }
        return false
    }
}

/// Members, elements and slices of values.
enum Access {
    static func member(_ name: String, of value: RuleValue, _ evaluation: Evaluation) -> RuleValue {
        switch value {
        case .map(let map): return evaluation.member(named: name, of: map) ?? .failure(.undefinedProperty(name))
        case .path(let path):
            if let bound = path.bound.last(where: { UTF8Order.equal($0.name, name) }) { return .string(bound.string) }
            return .failure(.undefinedProperty(name))
        case .null: return .failure(.nullValue)
        case .error: return value
        default: return .failure(.type(received: value.typeName, expected: "map,path"))
        }
    }

    static func element(_ index: RuleValue, of value: RuleValue, _ evaluation: Evaluation) -> RuleValue {
        switch (value, index) {
        case (.map, .string(let name)), (.path, .string(let name)): return member(name, of: value, evaluation)
        case (.list(let list), .int(let position)):
            guard let offset = Int(exactly: position), offset >= 0, offset < list.count else {
                return .failure(.indexOutOfBounds(position, size: list.count))
            }
            return list[offset]
        case (.string(let string), .int(let position)):
            let count = string.utf16.count
            guard let offset = Int(exactly: position), offset >= 0, offset < count else {
                return .failure(.indexOutOfBounds(position, size: count))
            }
            return .string(Units.slice(string, offset..<offset + 1))
        case (.path(let path), .int(let position)):
            if let name = path.openName { return Conversion.unbound(name) }
            guard let offset = Int(exactly: position), offset >= 0, offset < path.segments.count,
                case .string(let string) = path.segments[offset]
            else { return .failure(.indexOutOfBounds(position, size: path.segments.count)) }
            return .string(string)
        case (.null, _): return .failure(.nullValue)
        case (.map, _), (.list, _), (.string, _), (.path, _):
            let type = value.typeName
            let expected =
                switch value {
                case .map: "map[string]"
                case .path: "path[int], path[string]"
                default: "\(type)[int]"
                }
            return .failure(.unsupported(received: "\(type)[\(index.typeName)]", expected: expected))
        default: return .failure(.functionNotFound("[]"))
        }
    }

    static func slice(_ value: RuleValue, from: RuleValue?, to: RuleValue?) -> RuleValue {
        let count: Int
        switch value {
        case .list(let list): count = list.count
        case .string(let string): count = string.utf16.count
        case .path(let path):
            if let name = path.openName { return Conversion.unbound(name) }
            count = path.segments.count
        case .null: return .failure(.nullValue)
        default: return .failure(.functionNotFound("@range"))
        }
        guard case .int(let start) = from ?? .int(0), case .int(let end) = to ?? .int(Int64(count)) else {
            let bounds = [from, to].map { $0?.typeName ?? "int" }.joined(separator: ":")
            let expected = ["null:null", "null:int", "int:null", "int:int"].map { "\(value.typeName)[\($0)]" }
            return .failure(
                .unsupported(
                    received: "\(value.typeName)[\(bounds)]", expected: expected.joined(separator: ", ")))
        }
        // Checked in this order, by measurement: the begin, the last element, then both together.
        if start < 0 || start >= count { return .failure(.indexOutOfBounds(start, size: count)) }
        let last = end.subtractingReportingOverflow(1).partialValue
        if last < 0 || last >= count { return .failure(.indexOutOfBounds(last, size: count)) }
        if start > end { return .failure(.illegalRange(from: start, to: end)) }
        let range = Int(start)..<Int(end)
        switch value {
        case .list(let list): return .list(list.slice(range))
        case .string(let string): return .string(Units.slice(string, range))
        case .path(let path): return .path(RulePath(Array(path.segments[range])))
        default: return .failure(.functionNotFound("@range"))
        }
    }
}

/// Strings by UTF-16 code units, the unit of indexes in rules.
enum Units {
    /// - Parameter range: within the string. Half of a surrogate pair becomes U+FFFD, because a Swift string cannot
    ///   contain it.
    static func slice(_ string: String, _ range: Range<Int>) -> String {
        let units = string.utf16
        let start = units.index(units.startIndex, offsetBy: range.lowerBound)
        let end = units.index(start, offsetBy: range.count)
        return String(decoding: units[start..<end], as: UTF16.self)
    }
}
