import HearthModel

/// `&&` and `||`: an operand that decides alone does so even when the other one is an error.
final class LogicNode: CompiledNode, @unchecked Sendable {
    let left: CompiledNode
    let right: CompiledNode
    /// The value that decides: false for `&&`, true for `||`.
    let decisive: Bool

    init(_ id: Int, _ left: CompiledNode, _ right: CompiledNode, decisive: Bool) {
        self.left = left
        self.right = right
        self.decisive = decisive
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let first = left.run(evaluation)
        if case .bool(let value) = first, value == decisive { return first }
        evaluation.spend(1)
        let second = right.run(evaluation)
        if case .bool(let value) = second {
            if value == decisive { return second }
            if case .bool = first { return second }
            return Self.error(first)
        }
        if case .bool = first { return Self.error(second) }
        return Self.error(first)
    }

    static func error(_ value: RuleValue) -> RuleValue {
        value.isError ? value : .failure(.type(received: value.typeName, expected: "bool"))
    }
}

final class NotNode: CompiledNode, @unchecked Sendable {
    let operand: CompiledNode

    init(_ id: Int, _ operand: CompiledNode) {
        self.operand = operand
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = operand.run(evaluation)
        switch value {
        case .bool(let value): return .bool(!value)
        case .error: return value
        default: return .failure(.unsupported(received: "!\(value.typeName)", expected: "!bool"))
        }
    }
}

final class NegateNode: CompiledNode, @unchecked Sendable {
    let operand: CompiledNode

    init(_ id: Int, _ operand: CompiledNode) {
        self.operand = operand
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = operand.run(evaluation)
        switch value {
        case .int(let value): return value == .min ? .failure(.integerOverflow) : .int(-value)
        case .float(let value): return .float(-value)
        case .duration(let value):
            return .duration(RuleTime(seconds: -value.seconds, nanoseconds: -value.nanoseconds))
        case .error: return value
        default:
            return .failure(.unsupported(received: "-\(value.typeName)", expected: "-int, -float, -duration"))
        }
    }
}

/// `==` and `!=`
final class EqualityNode: CompiledNode, @unchecked Sendable {
    let left: CompiledNode
    let right: CompiledNode
    let isNegated: Bool

    init(_ id: Int, _ left: CompiledNode, _ right: CompiledNode, isNegated: Bool) {
        self.left = left
        self.right = right
        self.isNegated = isNegated
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let first = left.run(evaluation)
        let second = right.run(evaluation)
        switch (first, second) {
        case (.error, _): return first
        case (_, .error): return second
        case (.constraint(let constraint), _):
            return Operators.decide(constraint, isNegated ? .notEqual : .equal, second, evaluation)
        case (_, .constraint(let constraint)):
            return Operators.decide(constraint, isNegated ? .notEqual : .equal, first, evaluation)
        default:
            guard evaluation.isOfPartialData, first.isOpen || second.isOpen else {
                return .bool(evaluation.equal(first, second) != isNegated)
            }
            return evaluation.decideEqual(first, second).map { .bool($0 != isNegated) } ?? .failure(.unprovable)
        }
    }
}

/// `<`, `<=`, `>` and `>=`
final class ComparisonNode: CompiledNode, @unchecked Sendable {
    let left: CompiledNode
    let right: CompiledNode
    let comparison: BinaryOperator

    init(_ id: Int, _ left: CompiledNode, _ right: CompiledNode, _ comparison: BinaryOperator) {
        self.left = left
        self.right = right
        self.comparison = comparison
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let first = left.run(evaluation)
        let second = right.run(evaluation)
        switch (first, second) {
        case (.error, _): return first
        case (_, .error): return second
        case (.constraint(let constraint), _): return Operators.decide(constraint, comparison, second, evaluation)
        case (_, .constraint(let constraint)):
            return Operators.decide(constraint, Operators.mirrored(comparison), first, evaluation)
        default: return Operators.compare(first, second, comparison)
        }
    }
}

/// `+ - * / %`
final class ArithmeticNode: CompiledNode, @unchecked Sendable {
    let left: CompiledNode
    let right: CompiledNode
    let operation: BinaryOperator

    init(_ id: Int, _ left: CompiledNode, _ right: CompiledNode, _ operation: BinaryOperator) {
        self.left = left
        self.right = right
        self.operation = operation
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let first = left.run(evaluation)
        let second = right.run(evaluation)
        if first.isError { return first }
        if second.isError { return second }
        return Operators.calculate(first, second, operation, evaluation)
    }
}

/// `element in collection`: the collection is evaluated first.
final class MembershipNode: CompiledNode, @unchecked Sendable {
    let element: CompiledNode
    let collection: CompiledNode

    init(_ id: Int, _ element: CompiledNode, _ collection: CompiledNode) {
        self.element = element
        self.collection = collection
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let container = collection.run(evaluation)
        let value = element.run(evaluation)
        if container.isError { return container }
        // A value that is not a collection is an error for every element.
        switch container {
        case .list, .set, .map, .constraint: if value.isError { return value }
        default: break
        }
        return Operators.contains(container, value, evaluation)
    }
}

final class TypeTestNode: CompiledNode, @unchecked Sendable {
    let operand: CompiledNode
    let test: TypeTest

    init(_ id: Int, _ operand: CompiledNode, _ test: TypeTest) {
        self.operand = operand
        self.test = test
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        evaluation.spend(1)
        let value = operand.run(evaluation)
        guard let type = value.type else { return value }
        if type == .constraint, evaluation.isOfPartialData { return .failure(.unprovable) }
        return .bool(test.holds(type))
    }
}

final class ConditionalNode: CompiledNode, @unchecked Sendable {
    let condition: CompiledNode
    let first: CompiledNode
    let second: CompiledNode

    init(_ id: Int, _ condition: CompiledNode, _ first: CompiledNode, _ second: CompiledNode) {
        self.condition = condition
        self.first = first
        self.second = second
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        evaluation.spend(1)
        let value = condition.run(evaluation)
        guard case .bool(let holds) = value else { return LogicNode.error(value) }
        if holds { return first.run(evaluation) }
        evaluation.spend(2)
        return second.run(evaluation)
    }
}
