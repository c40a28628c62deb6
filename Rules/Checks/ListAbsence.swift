/// Finds rules of lists that test fields which a query may not filter: whether they exist, their number, their whole
/// value. Such a test passes for every list in Google's emulator, and is an error where lists must not find documents
/// that `get` denies. Therefore it is a warning in both modes.
struct ListAbsence {
    private static let methods = ["get", "keys", "values", "size", "diff"]
    private static let string =
        "For a list, only the fields that its query filters are known: "
        + "a test of others is an error, and in local development they count as absent."

    private var functions: [String: FunctionDeclaration] = [:]
    private var visited: Set<String> = []
    /// Functions that are still to be visited: a chain of calls may be as long as the source, the stack is not.
    private var called: [FunctionDeclaration] = []
    private var found: [SourceRange] = []

    static func warnings(_ file: SourceFile, _ lines: LineIndex) -> [RulesIssue] {
        var finder = ListAbsence()
        for function in file.functions { finder.functions[function.name] = function }
        for service in file.services {
            for function in service.functions { finder.functions[function.name] = function }
            for match in service.matches { finder.visit(match) }
        }
        return finder.found.map { range in
            let position = lines.position(range.start)
            return RulesIssue(line: position.line, column: position.column, description: string, severity: .warning)
        }
    }

    private mutating func visit(_ match: MatchDeclaration) {
        for function in match.functions { functions[function.name] = function }
        for rule in match.rules {
            switch rule {
            case .match(let inner): visit(inner)
            case .allow(let allow):
                let isOfLists = allow.methods.contains { $0.name == "list" || $0.name == "read" }
                if isOfLists, let condition = allow.condition { visit(condition) }
                while let function = called.popLast() {
                    for variable in function.variables { visit(variable.value) }
                    visit(function.result)
                }
            }
        }
    }

    private mutating func visit(_ expression: Expression) {
        if asksForAll(expression) { found.append(expression.range) }
        switch expression.kind {
        case .list(let elements): for element in elements { visit(element) }
        case .map(let entries):
            for entry in entries {
                visit(entry.key)
                visit(entry.value)
            }
        case .path(let parts):
            for case .interpolation(let inner) in parts { visit(inner) }
        case .group(let inner), .unary(_, let inner), .isType(let inner, _), .member(let inner, _): visit(inner)
        case .binary(_, let left, let right), .index(let left, let right):
            visit(left)
            visit(right)
        case .conditional(let condition, let first, let second):
            visit(condition)
            visit(first)
            visit(second)
        case .slice(let inner, let from, let to):
            visit(inner)
            if let from { visit(from) }
            if let to { visit(to) }
        case .call(let name, let arguments):
            for argument in arguments { visit(argument) }
            // Each function once: the result is the same for every caller.
            if visited.insert(name).inserted, let function = functions[name] { called.append(function) }
        case .method(let receiver, _, let arguments):
            visit(receiver)
            for argument in arguments { visit(argument) }
        case .null, .boolean, .integer, .float, .string, .bytes, .variable: break
        }
    }

    private func asksForAll(_ expression: Expression) -> Bool {
        switch expression.kind {
        case .method(let receiver, let name, let arguments):
            Self.methods.contains(name) && (Self.isData(receiver) || arguments.contains(where: Self.isData))
        case .binary(let operation, _, let right) where operation.rawValue == "in": Self.isData(right)
        case .binary(let operation, let left, let right) where ["==", "!="].contains(operation.rawValue):
            Self.isWholeData(left) || Self.isWholeData(right)
        default: false
        }
    }

    /// `resource.data`, or a part of it.
    private static func isData(_ expression: Expression) -> Bool {
        switch expression.kind {
        case .group(let inner): isData(inner)
        case .member(let inner, _), .index(let inner, _): isWholeData(expression) || isData(inner)
        default: false
        }
    }

    private static func isWholeData(_ expression: Expression) -> Bool {
        switch expression.kind {
        case .group(let inner): isWholeData(inner)
        case .member(let inner, "data"): inner.kind == .variable("resource")
        default: false
        }
    }
}

extension Ruleset {
    /// The tests in a source's rules for lists that depend on unfiltered fields. Empty for a source with errors.
    package static func listWarnings(_ source: String) -> [RulesIssue] {
        let bytes = Array(source.utf8)
        if bytes.count >= RulesLimits.sourceSizeBytesMax { return [] }
        let (file, found) = Parser.parse(bytes)
        return found.hasErrors ? [] : ListAbsence.warnings(file, LineIndex(bytes))
    }
}
