import HearthModel
import HearthTree

/// Why an expression has no value.
enum TreeFailure: Error {
    /// A value of a wrong kind for an operator or a method: the whole rule fails, whatever surrounds it.
    case mismatch
    /// The decision took too many steps, and is a denial.
    case exhausted
    /// The data could not be read, which is not a denial.
    case unreadable(Status)
}

/// The state of one decision, owned by its caller.
final class TreeEvaluation {
    let before: any TreeData
    /// The tree after a write.
    let after: (any TreeData)?
    let query: TreeQuery?
    private let auth: TreeRuleValue
    private let now: TreeRuleValue
    private let stepsMax: Int
    /// Whether it ended because it took too many steps.
    private(set) var isOutOfSteps = false
    private var steps = 0

    /// The path of the rule that is being evaluated.
    var keys: [TreeKey] = []
    /// The node after the write, when it is known.
    var newNode: Node?
    /// The keys that match the wildcards above it, from the root.
    var captures: [TreeKey] = []

    init(
        before: any TreeData, after: (any TreeData)?, query: TreeQuery?, auth: TreeAuth?, now: Int64,
        stepsMax: Int = TreeRulesLimits.stepsMax
    ) {
        self.stepsMax = stepsMax
        self.before = before
        self.after = after
        self.query = query
        self.auth = TreeRuleValue(auth)
        self.now = .number(Double(now))
    }

    func spend(_ count: Int) throws(TreeFailure) {
        steps += count
        if steps > stepsMax {
            isOutOfSteps = true
            throw .exhausted
        }
    }

    /// Counts the bytes of strings that are read completely.
    func spend(bytes: Int) throws(TreeFailure) {
        try spend(bytes / TreeRulesLimits.stringBytesPerStep + 1)
    }

    /// Whether a rule holds. An error in a rule does not propagate: the rule does not hold then.
    func holds(_ rule: TreeExpression) throws(TreeFailure) -> Bool {
        do throws(TreeFailure) {
            return try bool(rule)
        } catch .mismatch {
            return false
        } catch {
            throw error
        }
    }

    // MARK: Kinds of values

    private func bool(_ expression: TreeExpression) throws(TreeFailure) -> Bool {
        guard case .bool(let value) = try evaluate(expression) else { throw .mismatch }
        return value
    }

    private func number(_ expression: TreeExpression) throws(TreeFailure) -> Double {
        guard case .number(let value) = try evaluate(expression) else { throw .mismatch }
        return value
    }

    private func string(_ expression: TreeExpression) throws(TreeFailure) -> String {
        guard case .string(let value) = try evaluate(expression) else { throw .mismatch }
        try spend(bytes: value.utf8.count)
        return value
    }

    private func snapshot(_ expression: TreeExpression) throws(TreeFailure) -> TreeSnapshot {
        guard case .snapshot(let value) = try evaluate(expression) else { throw .mismatch }
        return value
    }

    /// A string that rules have built.
    private func built(_ string: String) throws(TreeFailure) -> TreeRuleValue {
        let count = string.utf8.count
        if count > TreeRulesLimits.stringSizeBytesMax { throw .exhausted }
        try spend(bytes: count)
        return .string(string)
    }

    // MARK: Expressions

    func evaluate(_ expression: TreeExpression) throws(TreeFailure) -> TreeRuleValue {
        try spend(1)
        switch expression {
        case .constant(let value): return value
        case .auth: return auth
        case .now: return now
        case .capture(let index): return .string(captures[index].string)
        case .root: return .snapshot(TreeSnapshot(isNew: false, keys: []))
        case .data: return .snapshot(TreeSnapshot(isNew: false, keys: keys))
        case .newData: return .snapshot(TreeSnapshot(isNew: true, keys: keys, node: newNode))
        case .query(let member): return query?.ruleValue(member) ?? TreeQuery.noRuleValue(member)
        case .member(let target, let name): return try member(try evaluate(target), name)
        case .element(let target, let index): return try element(target, index)
        case .length(let target):
            let value = try evaluate(target)
            guard case .string(let string) = value else { return try member(value, "length") }
            try spend(bytes: string.utf8.count)
            return .number(Double(string.utf16.count))
        case .not(let operand): return .bool(try !bool(operand))
        case .negate(let operand): return .number(-(try number(operand)))
        case .and(let operands):
            for operand in operands where try !bool(operand) { return .bool(false) }
            return .bool(true)
        case .or(let operands):
            for operand in operands where try bool(operand) { return .bool(true) }
            return .bool(false)
        case .conditional(let condition, let first, let second):
            return try evaluate(try bool(condition) ? first : second)
        case .binary(let known, let first, let second): return try binary(known, first, second)
        case .child(let target, let path): return .snapshot(try snapshot(target).child(try string(path)))
        case .parent(let target):
            guard let parent = try snapshot(target).parent else { throw .mismatch }
            return .snapshot(parent)
        case .hasChild(let target, let path): return .bool(try exists(try snapshot(target).child(try string(path))))
        case .hasAllChildren(let target, let names):
            let parent = try snapshot(target)
            // All of them are evaluated: a missing child does not hide an error.
            var hasAll = true
            for name in names {
                let child = parent.child(try string(name))
                if hasAll { hasAll = try exists(child) }
            }
            return .bool(hasAll)
        case .property(let property, let target): return try self.property(property, try snapshot(target))
        case .string(let method, let target, let arguments): return try textMethod(method, target, arguments)
        case .matches(let target, let pattern): return .bool(pattern.isFound(in: try string(target)))
        }
    }

    /// A member of null is null: rules use `auth.uid` without a test of `auth`.
    private func member(_ value: TreeRuleValue, _ name: String) throws(TreeFailure) -> TreeRuleValue {
        switch value {
        case .claims(let claims): return TreeRuleValue(claims[name])
        case .null: return .null
        // Primitives have no members except their methods, as in JavaScript.
        case .bool, .number, .string: return .null
        case .children, .snapshot: throw .mismatch
        }
    }

    private func element(_ target: TreeExpression, _ index: TreeExpression) throws(TreeFailure) -> TreeRuleValue {
        let value = try evaluate(target)
        switch try evaluate(index) {
        case .string(let name): return try member(value, name)
        case .number(let number):
            guard case .claims(let claims) = value, let items = claims.array, let position = Int(exactly: number),
                items.indices.contains(position)
            else { return .null }
            return TreeRuleValue(items[position])
        default: throw .mismatch
        }
    }

    // MARK: Operators

    private func binary(
        _ known: TreeOperator, _ first: TreeExpression, _ second: TreeExpression
    ) throws(TreeFailure) -> TreeRuleValue {
        let left = try evaluate(first)
        let right = try evaluate(second)
        switch known {
        case .equal, .notEqual:
            if case .string(let left) = left, case .string(let right) = right {
                try spend(bytes: min(left.utf8.count, right.utf8.count))
            }
            return .bool((left == right) == (known == .equal))
        case .less, .lessOrEqual, .greater, .greaterOrEqual: return .bool(try isOrdered(known, left, right))
        case .add: return try sum(left, right)
        case .subtract, .multiply, .divide, .remainder:
            guard case .number(let left) = left, case .number(let right) = right else { throw .mismatch }
            switch known {
            case .subtract: return .number(left - right)
            case .multiply: return .number(left * right)
            // Every division by zero is NaN, never infinity.
            case .divide: return .number(right == 0 ? .nan : left / right)
            default: return .number(left.truncatingRemainder(dividingBy: right))
            }
        }
    }

    private func isOrdered(
        _ known: TreeOperator, _ left: TreeRuleValue, _ right: TreeRuleValue
    ) throws(TreeFailure) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)):
            // Each by its own operator: no comparison with NaN is true.
            switch known {
            case .less: return left < right
            case .lessOrEqual: return left <= right
            case .greater: return left > right
            default: return left >= right
            }
        case (.string(let left), .string(let right)):
            try spend(bytes: min(left.utf8.count, right.utf8.count))
            let order = UTF16Order.compare(left, right)
            switch known {
            case .less: return order < 0
            case .lessOrEqual: return order <= 0
            case .greater: return order > 0
            default: return order >= 0
            }
        default: throw .mismatch
        }
    }

    private func sum(_ left: TreeRuleValue, _ right: TreeRuleValue) throws(TreeFailure) -> TreeRuleValue {
        switch (left, right) {
        case (.number(let left), .number(let right)): return .number(left + right)
        case (.string(let left), .string(let right)): return try built(left + right)
        case (.string(let left), .number(let right)): return try built(left + Decimal.javaScript(right))
        case (.number(let left), .string(let right)): return try built(Decimal.javaScript(left) + right)
        default: throw .mismatch
        }
    }

    private func textMethod(
        _ method: TreeExpression.StringMethod, _ target: TreeExpression, _ arguments: [TreeExpression]
    ) throws(TreeFailure) -> TreeRuleValue {
        let subject = try string(target)
        var strings: [String] = []
        for argument in arguments { strings.append(try string(argument)) }
        switch method {
        case .contains: return .bool(TextSearch(strings[0]).isFound(in: subject))
        case .beginsWith: return .bool(subject.utf8.starts(with: strings[0].utf8))
        case .endsWith: return .bool(subject.utf8.reversed().starts(with: strings[0].utf8.reversed()))
        case .replace:
            guard
                let result = TextSearch(strings[0]).replacing(
                    in: subject, with: strings[1], sizeMax: TreeRulesLimits.stringSizeBytesMax)
            else { throw .exhausted }
            return try built(result)
        case .toLowerCase: return try built(subject.lowercased())
        case .toUpperCase: return try built(subject.uppercased())
        }
    }
}
