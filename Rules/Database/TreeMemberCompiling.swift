/// Members and methods of snapshots, strings, `auth` and `query`.
extension TreeExpressionCompiler {
    private static let snapshotMethods: Set<String> = [
        "val", "child", "parent", "hasChild", "hasChildren", "exists", "getPriority", "isNumber", "isString",
        "isBoolean",
    ]
    private static let textMethods: Set<String> = [
        "contains", "beginsWith", "endsWith", "replace", "toLowerCase", "toUpperCase", "matches",
    ]

    /// - Parameter isCalled: whether parentheses follow, which only methods may have.
    mutating func member(
        _ target: TreeSyntax, _ name: String, at offset: Int, isCalled: Bool
    ) throws(TreeSyntaxError) -> Typed {
        let (expression, type) = try compile(target)
        switch type {
        case .snapshot:
            guard Self.snapshotMethods.contains(name) else { break }
            return (expression, .function)
        case .claim:
            if isCalled, Self.textMethods.contains(name) { return (expression, .function) }
            return (name == "length" ? .length(expression) : .member(expression, name), .claim)
        case .string, .value:
            if name == "length" { return (.length(expression), .number) }
            guard Self.textMethods.contains(name) else { break }
            return (expression, .function)
        case .query:
            guard let member = TreeExpression.QueryMember(rawValue: name) else { break }
            switch member {
            case .orderByKey, .orderByValue, .orderByPriority: return (.query(member), .bool)
            default: return (.query(member), .value)
            }
        case .number, .bool, .null, .pattern, .array, .function, .mixed: break
        }
        throw TreeSyntaxError("No such method/property '\(name)'.", at: offset)
    }

    mutating func element(_ target: TreeSyntax, _ index: TreeSyntax) throws(TreeSyntaxError) -> Typed {
        let (expression, type) = try compile(target)
        let (position, indexType) = try compile(index)
        guard type == .claim, indexType.mayBeString || indexType.mayBeNumber else {
            throw TreeSyntaxError(
                "No such method/property: only auth may be indexed by an expression.", at: index.offset)
        }
        return (.element(expression, position), .claim)
    }

    mutating func call(
        _ target: TreeSyntax, _ arguments: [TreeSyntax], at offset: Int
    ) throws(TreeSyntaxError) -> Typed {
        let notFunction = TreeSyntaxError(
            "Type error: Function call on target that is not a function.", at: target.offset)
        guard case .member(let object, let name) = target.kind else {
            _ = try compile(target)
            throw notFunction
        }
        let (receiver, type) = try member(object, name, at: target.offset, isCalled: true)
        guard type == .function else { throw notFunction }
        if name == "hasChildren" { return try hasChildren(receiver, arguments, at: offset) }
        if let property = TreeExpression.SnapshotProperty(rawValue: name) {
            try count(arguments, 0, of: name, at: offset)
            let isOpen = property == .value || property == .priority
            return (.property(property, receiver), isOpen ? .value : .bool)
        }
        switch name {
        case "parent":
            try count(arguments, 0, of: name, at: offset)
            return (.parent(receiver), .snapshot)
        case "child": return (.child(receiver, try strings(arguments, 1, of: name, at: offset)[0]), .snapshot)
        case "hasChild": return (.hasChild(receiver, try strings(arguments, 1, of: name, at: offset)[0]), .bool)
        case "matches":
            try count(arguments, 1, of: name, at: offset)
            guard case .pattern(let pattern, let flags) = arguments[0].kind else {
                throw TreeSyntaxError(
                    "matches() expects a regular expression literal argument.", at: arguments[0].offset)
            }
            let compiled = try patterns.pattern(pattern, flags: flags, at: arguments[0].offset)
            return (.matches(receiver, compiled), .bool)
        default: break
        }
        guard let method = TreeExpression.StringMethod(rawValue: name) else {
            preconditionFailure("a method without a meaning: \(name)")
        }
        let expected =
            switch method {
            case .contains, .beginsWith, .endsWith: 1
            case .replace: 2
            case .toLowerCase, .toUpperCase: 0
            }
        let compiled = try strings(arguments, expected, of: name, at: offset)
        return (.string(method, receiver, compiled), expected == 1 ? .bool : .string)
    }

    // MARK: Arguments

    private func count(
        _ arguments: [TreeSyntax], _ count: Int, of name: String, at offset: Int
    ) throws(TreeSyntaxError) {
        guard arguments.count != count else { return }
        throw TreeSyntaxError("\(name)() expects \(count) argument\(count == 1 ? "" : "s").", at: offset)
    }

    /// Arguments that must be strings. An expression of unknown type passes; so does null, which fails when it is
    /// evaluated.
    private mutating func strings(
        _ arguments: [TreeSyntax], _ count: Int, of name: String, at offset: Int
    ) throws(TreeSyntaxError) -> [TreeExpression] {
        try self.count(arguments, count, of: name, at: offset)
        var compiled: [TreeExpression] = []
        for (index, argument) in arguments.enumerated() {
            let (expression, type) = try compile(argument)
            guard type.mayBeString || type == .null else {
                throw TreeSyntaxError(
                    count == 1
                        ? "\(name)() expects a string argument."
                        : "Argument \(index + 1) of \(name)() must be a string.", at: argument.offset)
            }
            compiled.append(expression)
        }
        return compiled
    }

    private mutating func hasChildren(
        _ receiver: TreeExpression, _ arguments: [TreeSyntax], at offset: Int
    ) throws(TreeSyntaxError) -> Typed {
        guard let argument = arguments.first else { return (.property(.hasChildren, receiver), .bool) }
        guard arguments.count == 1 else {
            throw TreeSyntaxError(
                "hasChildren() expects only a single argument (containing an array of child names).", at: offset)
        }
        guard case .array(let items) = argument.kind else {
            throw TreeSyntaxError("hasChildren() expects an array of child names.", at: argument.offset)
        }
        var names: [TreeExpression] = []
        for item in items {
            let (expression, type) = try compile(item)
            guard type.mayBeString else {
                throw TreeSyntaxError("hasChildren() expects an array of strings.", at: item.offset)
            }
            names.append(expression)
        }
        return (.hasAllChildren(receiver, names), .bool)
    }
}
