/// An expression, compiled: names are slots, literals are values, patterns are automata.
///
/// A node and the values that it holds never change once its ruleset is compiled; therefore threads may share it.
class CompiledNode: @unchecked Sendable {
    /// The position in `Ruleset.expressions`.
    let id: Int

    init(_ id: Int) {
        self.id = id
    }

    /// Evaluates and counts; every node runs its operands through this method.
    @inline(__always)
    final func run(_ evaluation: Evaluation) -> RuleValue {
        evaluation.spent &+= 1
        if evaluation.spent > RulesLimits.evaluationsMax || evaluation.isAborted { return evaluation.abort() }
        if evaluation.observer != nil { return runObserved(evaluation) }
        return evaluate(evaluation)
    }

    @inline(never)
    private func runObserved(_ evaluation: Evaluation) -> RuleValue {
        let expression = evaluation.ruleset.expressions[id]
        evaluation.observer?.willEvaluate(expression)
        let value = evaluate(evaluation)
        evaluation.observer?.didEvaluate(expression, RulesResult(value: value, evaluation: evaluation))
        return value
    }

    /// The value of the expression. Only `run` calls it.
    func evaluate(_ evaluation: Evaluation) -> RuleValue {
        preconditionFailure("a subclass must override evaluate")
    }
}

/// A literal.
final class ConstantNode: CompiledNode, @unchecked Sendable {
    let value: RuleValue

    init(_ id: Int, _ value: RuleValue) {
        self.value = value
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue { value }
}

/// An expression that is known to fail before it is evaluated, such as an undefined name.
final class FailingNode: CompiledNode, @unchecked Sendable {
    let reason: RuleFailure.Reason
    /// Evaluated first, for their errors and costs.
    let operands: [CompiledNode]

    init(_ id: Int, _ reason: RuleFailure.Reason, operands: [CompiledNode] = []) {
        self.reason = reason
        self.operands = operands
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        var first: RuleValue?
        for operand in operands {
            let value = operand.run(evaluation)
            if value.isError, first == nil { first = value }
        }
        return first ?? .failure(reason)
    }
}

/// `request` or `resource`.
final class GlobalNode: CompiledNode, @unchecked Sendable {
    let isRequest: Bool

    init(_ id: Int, isRequest: Bool) {
        self.isRequest = isRequest
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        isRequest ? .map(.request) : evaluation.resource
    }
}

/// A parameter or a `let` of the running function.
final class LocalNode: CompiledNode, @unchecked Sendable {
    let slot: Int

    init(_ id: Int, slot: Int) {
        self.slot = slot
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue { evaluation.locals[evaluation.base + slot] }
}

/// A capture of a match path.
final class CaptureNode: CompiledNode, @unchecked Sendable {
    let slot: Int

    init(_ id: Int, slot: Int) {
        self.slot = slot
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        switch evaluation.captures[slot] {
        case .segment(let index): return .string(evaluation.segments[index])
        case .glob(let start, let end, let isOpen):
            var segments = evaluation.segments[start..<end].map { RulePath.Segment.string($0) }
            if isOpen { segments.append(.open("")) }
            return .path(RulePath(segments))
        case .unbound: return .failure(.nullValue)
        }
    }
}

final class ListNode: CompiledNode, @unchecked Sendable {
    let elements: [CompiledNode]
    /// The list, when all its elements are literals.
    private let constant: RuleValue?

    init(_ id: Int, _ elements: [CompiledNode]) {
        self.elements = elements
        let literals = elements.compactMap { ($0 as? ConstantNode)?.value }
        constant = literals.count == elements.count ? .list(.built(literals)) : nil
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        if let constant, evaluation.observer == nil {
            evaluation.spend(elements.count)
            return evaluation.spent > RulesLimits.evaluationsMax ? evaluation.abort() : constant
        }
        var values: [RuleValue] = []
        values.reserveCapacity(elements.count)
        var failure: RuleValue?
        for element in elements {
            let value = element.run(evaluation)
            if value.isError, failure == nil { failure = value }
            values.append(value)
        }
        return failure ?? .list(.built(values))
    }
}

final class MapNode: CompiledNode, @unchecked Sendable {
    let entries: [(key: CompiledNode, value: CompiledNode)]

    init(_ id: Int, _ entries: [(key: CompiledNode, value: CompiledNode)]) {
        self.entries = entries
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        var values: [(name: String, value: RuleValue)] = []
        values.reserveCapacity(entries.count)
        var failure: RuleValue?
        for entry in entries {
            let key = entry.key.run(evaluation)
            let value = entry.value.run(evaluation)
            switch (key, value) {
            case (.error, _): failure = failure ?? key
            case (_, .error): failure = failure ?? value
            case (.string(let name), _): values.append((name, value))
            default: failure = failure ?? .failure(.type(received: key.typeName, expected: "string"))
            }
        }
        return failure ?? .map(.built(BuiltMap(values)))
    }
}

/// A path literal.
final class PathNode: CompiledNode, @unchecked Sendable {
    enum Part {
        case string(String)
        case value(CompiledNode)
        /// `{name}` of a capture in scope.
        case capture(CompiledNode)
        case open(String)
    }

    let parts: [Part]
    private let plainCount: Int

    init(_ id: Int, _ parts: [Part]) {
        self.parts = parts
        plainCount = parts.count { if case .value = $0 { false } else { true } }
        super.init(id)
    }

    override func evaluate(_ evaluation: Evaluation) -> RuleValue {
        evaluation.spend(plainCount)
        var segments: [RulePath.Segment] = []
        segments.reserveCapacity(parts.count)
        var failure: RuleValue?
        for part in parts {
            switch part {
            case .string(let string): segments.append(.string(string))
            case .open(let name): segments.append(.open(name))
            case .value(let node):
                let value = node.run(evaluation)
                if let error = Self.append(value, to: &segments) { failure = failure ?? error }
            case .capture(let node):
                if let error = Self.append(node.evaluate(evaluation), to: &segments) { failure = failure ?? error }
            }
        }
        if segments.count > RulesLimits.elementsMax { return evaluation.abort() }
        return failure ?? .path(RulePath(segments))
    }

    /// Appends an interpolated value; a value that is not a valid segment is returned as an error.
    private static func append(_ value: RuleValue, to segments: inout [RulePath.Segment]) -> RuleValue? {
        switch value {
        case .error: return value
        case .path(let path): segments.append(contentsOf: path.segments)
        default:
            guard let string = Conversion.string(of: value) else { return Signatures.unsupported("string", [value]) }
            segments.append(.string(string))
        }
        return nil
    }
}
