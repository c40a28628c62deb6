/// Compiles a syntax tree to a program: resolves names to slots, and reports the errors that are known before
/// evaluation.
struct Compiler {
    let file: SourceFile
    let lines: LineIndex
    var issues: IssueList
    var functions: [FunctionEntry] = []
    /// The locations of expressions, by id.
    var expressions: [RulesExpression] = []
    private var captureCount = 0

    // The state of the current declaration.
    var scope = Scope(parent: nil)
    var locals: [Local] = []
    var running: FunctionEntry?
    var parent: Int?

    struct Local {
        var name: String
        var range: SourceRange
        var isParameter: Bool
        var isRead = false
    }

    init(_ file: SourceFile, lines: LineIndex, issues: IssueList) {
        self.file = file
        self.lines = lines
        self.issues = issues
    }

    static let service = "cloud.firestore"
    private static let services: Set<String> = [service, "firebase.storage"]

    mutating func compile() -> Program {
        defer { for function in functions { function.dissolve() } }
        if file.effectiveVersion == 1 {
            issues.warning(
                "Ruleset uses old version (version [1]). Please update to the latest version (version [2]).", at: nil)
        }
        let global = Scope(parent: nil)
        declare(file.functions, in: global)
        var matches: [MatchProgram] = []
        for service in file.services where service.name == Self.service {
            let inner = Scope(parent: global)
            declare(service.functions, in: inner)
            matches = service.matches.map { match($0, in: inner, pattern: [], captures: 0) }
        }
        for service in file.services where !Self.services.contains(service.name) { warn(of: service) }
        compileBodies()
        for function in functions where !function.isCalled && !file.services.contains(where: Self.isForeign) {
            issues.warning(
                "Unused function: \(function.declaration.name).", at: function.declaration.nameRange)
        }
        if !CallGraph.check(functions, &issues) {
            // Programs that call each other would form a reference cycle.
            for function in functions { function.program.clear() }
            return .empty
        }
        return Program(matches: matches, captureCount: captureCount)
    }

    /// Rules of an unknown service apply to nothing.
    private mutating func warn(of service: ServiceDeclaration) {
        issues.warning(
            "Invalid service name: \(service.name).", at: service.range,
            hint: "Firestore's is \(Self.service): these rules apply to nothing.")
        var waiting = service.matches
        while let match = waiting.popLast() {
            for rule in match.rules {
                switch rule {
                case .match(let inner): waiting.append(inner)
                case .allow(let allow):
                    for method in allow.methods {
                        issues.warning("Invalid method name: \(method.name).", at: method.range)
                    }
                }
            }
        }
    }

    /// Rules of another product may call functions that Firestore's rules do not have.
    private static func isForeign(_ service: ServiceDeclaration) -> Bool { service.name != Self.service }

    // MARK: Functions

    private mutating func declare(_ declarations: [FunctionDeclaration], in scope: Scope) {
        for declaration in declarations {
            let entry = FunctionEntry(declaration, scope: scope)
            if scope.declare(entry) {
                functions.append(entry)
            } else {
                issues.error("Function \(declaration.name) is already defined.", at: declaration.nameRange)
            }
            check(declaration)
        }
    }

    private mutating func check(_ declaration: FunctionDeclaration) {
        if declaration.parameters.count > RulesLimits.parametersMax {
            issues.error(
                "Maximum allowed function arguments of \(RulesLimits.parametersMax) for function \(declaration.name) is "
                    + "reached.", at: declaration.nameRange)
        }
        var names: Set<String> = []
        for parameter in declaration.parameters where !names.insert(parameter.name).inserted {
            issues.error("Variable \(parameter.name) is already defined.", at: parameter.range)
        }
        names = []
        for variable in declaration.variables where !names.insert(variable.name).inserted {
            issues.error(
                "The identifier [\(variable.name)] is already bound in the current scope.", at: variable.range)
        }
        for named in declaration.parameters.map({ ($0.name, $0.range) })
            + declaration.variables.map({ ($0.name, $0.range) })
        where BuiltinFunction.namespaces.contains(named.0) {
            issues.error("\(named.0) is a package and cannot be used as variable name.", at: named.1)
        }
        if let first = declaration.variables.first, file.effectiveVersion == 1 {
            issues.error("Let bindings are not allowed in rules_version=\"1\";", at: first.range)
        }
        if declaration.variables.count > RulesLimits.variablesMax {
            issues.error(
                "Maximum allowed variable count of \(RulesLimits.variablesMax - 1) for a given function has been reached.",
                at: declaration.result.range)
        }
    }

    private mutating func compileBodies() {
        for function in functions {
            let declaration = function.declaration
            running = function
            scope = function.scope ?? Scope(parent: nil)
            locals = declaration.parameters.map { Local(name: $0.name, range: $0.range, isParameter: true) }
            var variables: [CompiledNode] = []
            for variable in declaration.variables {
                variables.append(root(variable.value).node)
                locals.append(Local(name: variable.name, range: variable.range, isParameter: false))
            }
            let result = root(declaration.result).node
            function.program.fill(variables: variables, result: result)
            for local in locals where !local.isRead {
                issues.warning("Unused variable: \(local.name).", at: local.range)
            }
        }
        running = nil
        locals = []
    }

    // MARK: Matches

    private mutating func match(
        _ match: MatchDeclaration, in outer: Scope, pattern: [MatchProgram.Segment], captures: Int
    ) -> MatchProgram {
        let inner = Scope(parent: outer)
        var full = pattern
        var captures = captures
        var names: Set<String> = []
        for segment in match.path {
            switch segment.kind {
            case .string(let string): full.append(.string(string))
            case .capture(let name), .glob(let name):
                let isGlob = if case .glob = segment.kind { true } else { false }
                if !names.insert(name).inserted {
                    let start = Int(segment.range.start) + 2
                    issues.error(
                        "Variable \(name) already exists in the PathTemplate.",
                        at: SourceRange(start, start + name.utf8.count))
                }
                if isGlob { checkGlob(segment, after: full) }
                full.append(isGlob ? .glob(captures) : .capture(captures))
                inner.declare(name, Scope.Capture(slot: captures, isGlob: isGlob))
                captures += 1
            }
        }
        checkLimits(match, segments: full.count, captures: captures)
        if file.effectiveVersion == 1 { checkOldGlob(match, full) }
        captureCount = max(captureCount, captures)
        declare(match.functions, in: inner)
        var items: [MatchProgram.Item] = []
        for rule in match.rules {
            switch rule {
            case .allow(let declaration): items.append(.allow(allow(declaration, in: inner)))
            case .match(let nested):
                items.append(.match(self.match(nested, in: inner, pattern: full, captures: captures)))
            }
        }
        return MatchProgram(
            pattern: full, ownStart: pattern.count, globMinimum: file.effectiveVersion == 1 ? 1 : 0, items: items)
    }

    private mutating func checkGlob(_ segment: MatchSegment, after pattern: [MatchProgram.Segment]) {
        let hasGlob = pattern.contains { if case .glob = $0 { true } else { false } }
        if hasGlob {
            issues.error(
                "Invalid glob match expression. Only one glob match is permitted in a match declaration path.",
                at: segment.range)
        }
    }

    /// In version 1 a recursive wildcard must end the path.
    private mutating func checkOldGlob(_ match: MatchDeclaration, _ pattern: [MatchProgram.Segment]) {
        let isGlob = pattern.dropLast().contains { if case .glob = $0 { true } else { false } }
        guard isGlob else { return }
        let own = match.path.first { if case .glob = $0.kind { true } else { false } }
        issues.error(
            "Invalid glob match expression. Glob matches are permitted as the last segment in a match declaration path.",
            at: own?.range ?? match.range)
    }

    private mutating func checkLimits(_ match: MatchDeclaration, segments: Int, captures: Int) {
        if segments > RulesLimits.pathSegmentsMax {
            issues.error(
                "Maximum allowed path length of \(RulesLimits.pathSegmentsMax) is reached.", at: match.range)
        }
        if captures > RulesLimits.capturesMax {
            issues.error(
                "Maximum allowed amount of \(RulesLimits.capturesMax) match field variables is reached.",
                at: match.range)
        }
    }

    private mutating func allow(_ allow: AllowDeclaration, in scope: Scope) -> AllowProgram {
        var methods: MethodSet = []
        for method in allow.methods {
            if let known = MethodSet(named: method.name) {
                methods.formUnion(known)
            } else {
                issues.warning(
                    "Invalid method name: \(method.name).", at: method.range,
                    hint: "The methods are get, list, create, update, delete, read and write.")
            }
        }
        self.scope = scope
        var condition: CompiledNode?
        var conditionPosition = lines.position(allow.range.start)
        if let expression = allow.condition {
            let compiled = root(expression)
            condition = compiled.node
            conditionPosition = lines.position(expression.range.start)
            if compiled.type.isDisjoint(with: .bool) {
                issues.warning(
                    "Invalid type. Permission statements expect a boolean value. Received one of "
                        + "[\(compiled.type.names)].", at: Self.core(expression).focus)
            }
        }
        let position = lines.position(allow.range.start)
        return AllowProgram(
            methods: methods, condition: condition, line: position.line, column: position.column,
            conditionLine: conditionPosition.line, conditionColumn: conditionPosition.column)
    }

    // MARK: Expressions

    typealias Compiled = (node: CompiledNode, type: StaticType)

    /// An expression that is not an operand.
    private mutating func root(_ expression: Expression) -> Compiled {
        parent = nil
        return compile(expression)
    }

    /// Assigns an id to an expression, and makes it the parent of all expressions until `close`.
    mutating func open(_ expression: Expression) -> (id: Int, outer: Int?) {
        let (line, column) = lines.position(expression.range.start)
        let id = expressions.count
        expressions.append(
            RulesExpression(
                id: id, line: line, column: column, startOffset: Int(expression.range.start),
                endOffset: Int(expression.range.end), parent: parent))
        defer { parent = id }
        return (id, parent)
    }
}

extension FunctionProgram {
    func clear() { fill(variables: [], result: nil) }
}
