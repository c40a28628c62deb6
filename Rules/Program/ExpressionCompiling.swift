/// Compiles expressions to nodes.
extension Compiler {
    mutating func compile(_ expression: Expression) -> Compiled {
        // Parentheses are not an expression: neither budget nor coverage counts them.
        if case .group(let inner) = expression.kind { return compile(inner) }
        let (id, outer) = open(expression)
        defer { parent = outer }
        switch expression.kind {
        case .null: return (ConstantNode(id, .null), .null)
        case .boolean(let value): return (ConstantNode(id, .bool(value)), .bool)
        case .integer(let value): return (ConstantNode(id, .int(value)), .int)
        case .float(let value): return (ConstantNode(id, .float(value)), .float)
        case .string(let value): return (ConstantNode(id, .string(value)), .string)
        case .bytes(let value): return (ConstantNode(id, .bytes(value)), .bytes)
        case .list(let elements): return (ListNode(id, elements.map { compile($0).node }), .list)
        case .map(let entries): return map(entries, id)
        case .path(let parts): return (path(parts, id), .path)
        case .variable(let name): return variable(name, id, expression.range)
        case .group(let inner): return compile(inner)
        case .unary(let symbol, let operand): return unary(symbol, operand, id)
        case .binary(let symbol, let left, let right): return binary(symbol, left, right, id, expression)
        case .isType(let operand, let name):
            let node = compile(operand).node
            // The parser has reported an unknown name.
            return (TypeTestNode(id, node, TypeTest(name) ?? .type(.null)), .bool)
        case .conditional(let condition, let first, let second):
            let test = compile(condition)
            expect(.bool, test.type, at: condition)
            let (positive, negative) = (compile(first), compile(second))
            if !positive.type.isComparable(to: negative.type) {
                issues.warning(
                    "Ternary operator result if condition is true has a different type than if condition is false.",
                    at: expression.focus)
            }
            return (
                ConditionalNode(id, test.node, positive.node, negative.node), positive.type.union(negative.type)
            )
        case .member, .index, .slice: return access(expression, id)
        case .call(let name, let arguments): return call(name, arguments, id, expression)
        case .method(let receiver, let name, let arguments):
            return method(receiver, name, arguments, id, expression)
        }
    }

    /// Warns when no value of an expression can have an accepted type.
    /// - Parameter names: the types in the order of Google's message, where it is not the usual one.
    mutating func expect(
        _ expected: StaticType, _ received: StaticType, at expression: Expression, names: String? = nil
    ) {
        if received.isDisjoint(with: expected) {
            issues.warning(
                "Invalid type. Received one of [\(received.names)]. Expected one of [\(names ?? expected.names)].",
                at: Self.core(expression).focus)
        }
    }

    /// The expression inside parentheses.
    static func core(_ expression: Expression) -> Expression {
        var expression = expression
        while case .group(let inner) = expression.kind { expression = inner }
        return expression
    }

    // MARK: Literals and names

    private mutating func map(_ entries: [MapEntry], _ id: Int) -> Compiled {
        var compiled: [(key: CompiledNode, value: CompiledNode)] = []
        for entry in entries {
            let key = compile(entry.key)
            expect(.string, key.type, at: entry.key)
            compiled.append((key.node, compile(entry.value).node))
        }
        return (MapNode(id, compiled), .map)
    }

    private mutating func path(_ parts: [PathPart], _ id: Int) -> CompiledNode {
        PathNode(
            id,
            parts.map { part in
                switch part {
                case .string(let string): return .string(string)
                case .interpolation(let expression):
                    let inner = compile(expression)
                    expect(
                        [.path, .null, .number, .string, .bool], inner.type, at: expression,
                        names: "path, null, int, float, string, bool")
                    return .value(inner.node)
                case .placeholder(let name, let range):
                    guard let capture = scope.capture(name) else { return .open(name) }
                    issues.warning(
                        "Google's emulator does not fill {\(name)} from the match path.", at: range,
                        hint: "Write $(\(name)), which means the same everywhere.")
                    return .capture(CaptureNode(id, slot: capture.slot))
                }
            })
    }

    private mutating func variable(_ name: String, _ id: Int, _ range: SourceRange) -> Compiled {
        if let slot = locals.lastIndex(where: { $0.name == name }) {
            locals[slot].isRead = true
            return (LocalNode(id, slot: slot), .any)
        }
        if let capture = scope.capture(name) {
            return (CaptureNode(id, slot: capture.slot), capture.isGlob ? .path : .string)
        }
        switch name {
        case "request": return (GlobalNode(id, isRequest: true), .map)
        case "resource": return (GlobalNode(id, isRequest: false), .any)
        default: break
        }
        if BuiltinFunction.namespaces.contains(name) {
            issues.error("\(name) is a package and cannot be used as variable name.", at: range)
        } else {
            issues.warning("Invalid variable name: \(name).", at: range)
        }
        return (FailingNode(id, .nullValue), .any)
    }

    // MARK: Operators

    private mutating func unary(_ symbol: UnaryOperator, _ operand: Expression, _ id: Int) -> Compiled {
        let inner = compile(operand)
        switch symbol {
        case .not:
            expect(.bool, inner.type, at: operand)
            return (NotNode(id, inner.node), .bool)
        case .negate:
            let signed: StaticType = [.int, .float, .duration]
            expect(signed, inner.type, at: operand)
            let type = inner.type.intersection(signed)
            return (NegateNode(id, inner.node), type.isEmpty ? .any : type)
        }
    }

    private mutating func binary(
        _ symbol: BinaryOperator, _ left: Expression, _ right: Expression, _ id: Int, _ expression: Expression
    ) -> Compiled {
        let (first, second) = (compile(left), compile(right))
        switch symbol {
        case .and, .or:
            expect(.bool, first.type, at: left)
            expect(.bool, second.type, at: right)
            return (LogicNode(id, first.node, second.node, decisive: symbol == .or), .bool)
        case .equal, .notEqual:
            if !first.type.isComparable(to: second.type) {
                issues.warning(
                    "The sub-expressions are not comparable, so this comparison will always return "
                        + "\(symbol == .notEqual).", at: expression.focus)
            }
            checkPrecedence(symbol, left, right, expression)
            return (EqualityNode(id, first.node, second.node, isNegated: symbol == .notEqual), .bool)
        case .in:
            expect([.list, .set, .map, .constraint], second.type, at: right)
            return (MembershipNode(id, first.node, second.node), .bool)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            return (ComparisonNode(id, first.node, second.node, symbol), .bool)
        case .plus, .minus, .times, .divide, .modulo:
            var operands = StaticType.number
            if symbol == .plus { operands.formUnion([.string, .duration, .timestamp]) }
            if symbol == .minus { operands.formUnion([.duration, .timestamp]) }
            expect(operands, first.type, at: left)
            expect(operands, second.type, at: right)
            let isNumber =
                first.type.isSubset(of: .number) && second.type.isSubset(of: .number) || symbol == .times
                || symbol == .divide || symbol == .modulo
            return (ArithmeticNode(id, first.node, second.node, symbol), isNumber ? .number : operands)
        }
    }

    /// Google's emulator parses `==` before `in` and `is`; its documentation states the opposite.
    private mutating func checkPrecedence(
        _ symbol: BinaryOperator, _ left: Expression, _ right: Expression, _ expression: Expression
    ) {
        let other: String
        switch (left.kind, right.kind) {
        case (.binary(.in, _, _), _), (_, .binary(.in, _, _)): other = "in"
        case (_, .isType): other = "is"
        default: return
        }
        issues.warning(
            "Google's emulator evaluates '\(symbol.rawValue)' before '\(other)' here.", at: expression.focus,
            hint: "Put the '\(other)' in parentheses.")
    }

    // MARK: Members and calls

    private mutating func access(_ expression: Expression, _ id: Int) -> Compiled {
        switch expression.kind {
        case .member(let receiver, let name):
            let inner = compile(receiver)
            expect(.map, inner.type, at: receiver)
            return (MemberNode(id, inner.node, name), .any)
        case .index(let receiver, let index):
            let inner = compile(receiver)
            expect([.string, .list, .map, .path], inner.type, at: receiver)
            let position = compile(index)
            expect([.int, .string], position.type, at: index)
            return (IndexNode(id, inner.node, position.node), .any)
        case .slice(let receiver, let from, let to):
            let inner = compile(receiver)
            let sliced: StaticType = [.string, .list, .path]
            expect(sliced, inner.type, at: receiver)
            let start = from.map { compile($0).node }
            let end = to.map { compile($0).node }
            return (SliceNode(id, inner.node, from: start, to: end), inner.type.intersection(sliced))
        default: return (FailingNode(id, .nullValue), .any)
        }
    }

    private mutating func call(
        _ name: String, _ arguments: [Expression], _ id: Int, _ expression: Expression
    ) -> Compiled {
        if let function = scope.function(name) {
            running?.note(callee: function)
            function.isCalled = true
            let operands = arguments.map { compile($0).node }
            let count = function.declaration.parameters.count
            if operands.count != count {
                warnOfCount(name, expression)
                let parameters = function.declaration.parameters.map(\.name).joined(separator: ", ")
                return (
                    FailingNode(
                        id, .argumentCount(received: operands.count, expected: "\(name)(\(parameters))"),
                        operands: operands), .any
                )
            }
            return (CallNode(id, function.program, operands), .any)
        }
        return builtin(name, arguments, id, expression)
    }

    private mutating func warnOfCount(_ name: String, _ expression: Expression) {
        issues.warning(
            "Incorrect number of arguments supplied to function: \(name).", at: expression.focus)
    }

    private mutating func builtin(
        _ name: String, _ arguments: [Expression], _ id: Int, _ expression: Expression
    ) -> Compiled {
        let operands = arguments.map { compile($0) }
        guard let function = BuiltinFunction(rawValue: name) else {
            issues.warning("Invalid function name: \(name).", at: expression.focus)
            return (FailingNode(id, .functionNotFound(name), operands: operands.map(\.node)), .any)
        }
        let overloads = Signatures.overloads(name, parameterCount: function.parameterCount)
        if operands.count != function.parameterCount {
            warnOfCount(name, expression)
        } else {
            checkArguments(arguments, operands.map(\.type), overloads)
        }
        let result = overloads.reduce(into: StaticType()) { $0.formUnion(StaticType(named: $1.result)) }
        let type: StaticType = function == .get || function == .getAfter ? .any : result
        return (BuiltinNode(id, function, operands.map(\.node)), type)
    }

    private mutating func checkArguments(
        _ arguments: [Expression], _ types: [StaticType], _ overloads: [Signature]
    ) {
        for (position, argument) in arguments.enumerated() {
            var names: [String] = []
            for overload in overloads where !names.contains(overload.parameters[position]) {
                names.append(overload.parameters[position])
            }
            // Integers are accepted for floats.
            if names.contains("float"), !names.contains("int") { names.append("int") }
            let expected = names.reduce(into: StaticType()) { $0.formUnion(StaticType(named: $1)) }
            expect(expected, types[position], at: argument, names: names.joined(separator: ", "))
        }
    }

    private mutating func method(
        _ receiver: Expression, _ name: String, _ arguments: [Expression], _ id: Int, _ expression: Expression
    ) -> Compiled {
        if case .variable(let space) = receiver.kind, BuiltinFunction.namespaces.contains(space) {
            return builtin("\(space).\(name)", arguments, id, expression)
        }
        let inner = compile(receiver)
        let operands = arguments.map { compile($0) }
        let pattern = pattern(of: name, arguments)
        let node = MethodNode(id, inner.node, name, operands.map(\.node), pattern: pattern)
        guard let method = Method(rawValue: name) else {
            issues.warning("Invalid function name: \(name).", at: expression.focus)
            return (node, .any)
        }
        var receivers: StaticType = []
        var overloads: [Signature] = []
        for type in RuleType.allCases where type != .constraint {
            let own = Signatures.overloads("\(type.rawValue).\(name)", parameterCount: method.parameterCount)
            if own.isEmpty { continue }
            receivers.insert(StaticType(type))
            overloads += own
        }
        expect(receivers.union(.constraint), inner.type, at: receiver, names: receivers.names)
        if operands.count != method.parameterCount {
            warnOfCount(name, expression)
        } else {
            checkArguments(arguments, operands.map(\.type), overloads)
        }
        let result = overloads.reduce(into: StaticType()) { $0.formUnion(StaticType(named: $1.result)) }
        return (node, result.isEmpty ? .any : result)
    }

    /// The pattern of a method that takes one, compiled if it is a literal.
    private mutating func pattern(of method: String, _ arguments: [Expression]) -> RegularExpression? {
        guard ["matches", "replace", "split"].contains(method), var argument = arguments.first else { return nil }
        while case .group(let inner) = argument.kind { argument = inner }
        guard case .string(let source) = argument.kind else { return nil }
        if let pattern = RegularExpression(source, isLiteral: true) { return pattern }
        issues.error("Invalid regular expression pattern. Pattern: \(source).", at: argument.range)
        return nil
    }
}
