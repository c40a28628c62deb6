import HearthModel

/// `value.name`
final class MemberNode: CompiledNode, @unchecked Sendable {
    let receiver: CompiledNode
    let name: String
    private let known: KnownMember?

    init(_ id: Int, _ receiver: CompiledNode, _ name: String) {
        self.receiver = receiver
        self.name = name
        known = KnownMember(rawValue: name)
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = receiver.run(evaluation)
        guard case .map(let map) = value else { return Access.member(name, of: value, evaluation) }
        let member: RuleValue? =
            switch map {
            case .stored(let map): map[name].map { RuleValue($0) }
            case .large(let map): evaluation.member(name, of: map)
            case .built(let map): map[name]
            default: evaluation.member(known, of: map)
            }
        return member ?? .failure(.undefinedProperty(name))
    }
}

/// `value[index]`
final class IndexNode: CompiledNode, @unchecked Sendable {
    let receiver: CompiledNode
    let index: CompiledNode

    init(_ id: Int, _ receiver: CompiledNode, _ index: CompiledNode) {
        self.receiver = receiver
        self.index = index
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = receiver.run(evaluation)
        let index = index.run(evaluation)
        if value.isError { return value }
        if index.isError { return index }
        return Access.element(index, of: value, evaluation)
    }
}

/// `value[from:to]`
final class SliceNode: CompiledNode, @unchecked Sendable {
    let receiver: CompiledNode
    let from: CompiledNode?
    let to: CompiledNode?

    init(_ id: Int, _ receiver: CompiledNode, from: CompiledNode?, to: CompiledNode?) {
        self.receiver = receiver
        self.from = from
        self.to = to
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = receiver.run(evaluation)
        let start = from?.run(evaluation)
        let end = to?.run(evaluation)
        for operand in [value, start ?? .null, end ?? .null] where operand.isError { return operand }
        return Access.slice(value, from: start, to: end)
    }
}

/// A call of a method.
final class MethodNode: CompiledNode, @unchecked Sendable {
    let receiver: CompiledNode
    let name: String
    let arguments: [CompiledNode]
    private let method: Method?
    /// The compiled form of a literal pattern.
    private let pattern: RegularExpression?

    init(_ id: Int, _ receiver: CompiledNode, _ name: String, _ arguments: [CompiledNode], pattern: RegularExpression?)
    {
        self.receiver = receiver
        self.name = name
        self.arguments = arguments
        self.pattern = pattern
        method = Method(rawValue: name)
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let value = receiver.run(evaluation)
        // No method has more than two parameters; further arguments only matter if they are errors.
        let first = arguments.isEmpty ? RuleValue.null : arguments[0].run(evaluation)
        let second = arguments.count < 2 ? RuleValue.null : arguments[1].run(evaluation)
        var failure: RuleValue?
        for argument in arguments.dropFirst(2) {
            let value = argument.run(evaluation)
            if value.isError { failure = failure ?? value }
        }
        if value.isError { return value }
        if first.isError { return first }
        if second.isError { return second }
        if let failure { return failure }
        if case .null = value { return .failure(.nullValue) }
        guard let method else { return .failure(.functionNotFound(name)) }
        if arguments.count != method.parameterCount {
            return Signatures.wrongCount(of: value, method, arguments.count)
        }
        let call = MethodCall(
            method: method, receiver: value, first: first, second: second, pattern: pattern, evaluation: evaluation)
        return call.result() ?? .failure(.functionNotFound(name))
    }
}

/// A call of a built-in function.
final class BuiltinNode: CompiledNode, @unchecked Sendable {
    let function: BuiltinFunction
    let arguments: [CompiledNode]

    init(_ id: Int, _ function: BuiltinFunction, _ arguments: [CompiledNode]) {
        self.function = function
        self.arguments = arguments
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        if arguments.count == 1, function.parameterCount == 1 {
            let value = arguments[0].run(evaluation)
            if value.isError { return value }
            return BuiltinCall(function: function, node: id, evaluation: evaluation).result(value)
        }
        var values: [RuleValue] = []
        var failure: RuleValue?
        for argument in arguments {
            let value = argument.run(evaluation)
            if value.isError { failure = failure ?? value }
            values.append(value)
        }
        if let failure { return failure }
        if values.count != function.parameterCount { return Signatures.wrongCount(of: function, values.count) }
        return BuiltinCall(function: function, node: id, evaluation: evaluation).result(values)
    }
}

/// A function of the ruleset.
final class FunctionProgram: @unchecked Sendable {
    let name: String
    let parameterCount: Int
    /// Set once its body is compiled, which may call functions that are declared later.
    fileprivate(set) var variables: [CompiledNode] = []
    fileprivate(set) var result: CompiledNode?

    init(name: String, parameterCount: Int) {
        self.name = name
        self.parameterCount = parameterCount
    }

    func fill(variables: [CompiledNode], result: CompiledNode?) {
        self.variables = variables
        self.result = result
    }
}

/// A call of a function of the ruleset. Arguments are bound even when they are errors: an error only matters when it is
/// read.
final class CallNode: CompiledNode, @unchecked Sendable {
    let function: FunctionProgram
    let arguments: [CompiledNode]

    init(_ id: Int, _ function: FunctionProgram, _ arguments: [CompiledNode]) {
        self.function = function
        self.arguments = arguments
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        let base = evaluation.locals.count
        for argument in arguments {
            let value = argument.run(evaluation)
            evaluation.locals.append(value)
        }
        let caller = evaluation.base
        evaluation.base = base
        for variable in function.variables {
            evaluation.spend(1)
            let value = variable.run(evaluation)
            evaluation.locals.append(value)
        }
        let value = function.result?.run(evaluation) ?? .failure(.functionNotFound(function.name))
        evaluation.locals.removeLast(evaluation.locals.count - base)
        evaluation.base = caller
        return value
    }
}
