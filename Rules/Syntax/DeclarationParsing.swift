/// Parses services, matches, functions and allows.
extension Parser {
    mutating func sourceFile() -> SourceFile {
        var file = SourceFile()
        if token.kind == .end {
            let isBlank = lexer.source.isEmpty
            issues.error(
                isBlank
                    ? "Rules content empty. Compilation aborted."
                    : "mismatched input '<EOF>' expecting {'function', 'import', 'service', 'rules_version'}",
                at: isBlank ? nil : token.range)
            return file
        }
        var isFirst = true
        while token.kind != .end {
            let before = token.range
            do throws(Failure) {
                try topLevel(&file, isFirst: isFirst)
            } catch {
                recover()
                if isAt(.rightBrace) { advance() }
            }
            isFirst = false
            skipIfStuck(at: before)
        }
        return file
    }

    private mutating func topLevel(_ file: inout SourceFile, isFirst: Bool) throws(Failure) {
        switch token.kind {
        case .identifier("rules_version") where isFirst: file.version = try rulesVersion()
        case .identifier("import"): try importStatement()
        case .identifier("function"): file.functions.append(try function())
        case .identifier("service"): try service(into: &file)
        case .identifier("rules_version"):
            throw unexpected(hint: "rules_version must be the first statement of the source.")
        default:
            if isFirst {
                issues.error(
                    "mismatched input '\(tokenString)' expecting {'function', 'import', 'service', 'rules_version'}",
                    at: token.range)
                throw Failure()
            }
            throw unexpected()
        }
    }

    private mutating func rulesVersion() throws(Failure) -> Int {
        let start = token.range
        advance()
        try expect(.assign)
        guard case .string(let string) = token.kind else {
            if case .unclosed = token.kind { throw unexpected() }
            issues.error("mismatched input '\(tokenString)' expecting STRING", at: token.range)
            throw Failure()
        }
        advance()
        _ = take(.semicolon)
        switch string {
        case "1": return 1
        case "2": return 2
        default:
            issues.error("Unsupported rules version \(string).", at: start, hint: "The versions are '1' and '2'.")
            return 2
        }
    }

    private mutating func importStatement() throws(Failure) {
        let start = token.range
        advance()
        guard case .string(let module) = token.kind else { throw unexpected() }
        issues.error("Import statements are not allowed.", at: start)
        issues.error("Module \"\(module)\" is not part of the standard library.", at: start)
        recover()
    }

    // MARK: Services and matches

    private mutating func service(into file: inout SourceFile) throws(Failure) {
        advance()
        var (name, range) = try member()
        while take(.dot) {
            let next = try member()
            name += "." + next.name
            range = range.through(next.range)
        }
        if file.services.contains(where: { $0.name == name }) {
            issues.error("Duplicate service name declaration.", at: range)
        }
        try expect(.leftBrace)
        var service = ServiceDeclaration(name: name, range: range)
        matchDepth = 1
        defer { matchDepth = 0 }
        while !isAt(.rightBrace), token.kind != .end {
            let before = token.range
            do throws(Failure) {
                switch token.kind {
                case .identifier("function"): service.functions.append(try function())
                case .identifier("match"), .symbol(.slash): service.matches.append(try match())
                default: throw unexpected(hint: "'allow' belongs into a 'match'.")
                }
            } catch {
                recover()
            }
            skipIfStuck(at: before)
        }
        if service.functions.isEmpty, service.matches.isEmpty, !issues.hasErrors {
            issues.error("The 'service' body must contain at least one declaration.", at: token.range)
        }
        file.services.append(service)
        try endBlock()
    }

    private mutating func endBlock() throws(Failure) {
        if take(.rightBrace) { return }
        // Each open block lacks its brace; one report is enough.
        if matchDepth == 1 { issues.error("missing '}' at '\(tokenString)'", at: token.range) }
    }

    private mutating func match() throws(Failure) -> MatchDeclaration {
        let start = token.range
        if token.isWord("match") {
            advance()
        } else {
            issues.error("Missing 'match' keyword before path.", at: start)
        }
        let path = try matchPath()
        try expect(.leftBrace)
        var match = MatchDeclaration(path: path, range: start)
        matchDepth += 1
        defer { matchDepth -= 1 }
        if matchDepth > RulesLimits.matchDepthMax + 1 {
            issues.error(
                "Maximum allowed resource rule depth of \(RulesLimits.matchDepthMax - 1) is reached.", at: start)
            skipBlock()
            return match
        }
        var isEmpty = true
        while !isAt(.rightBrace), token.kind != .end {
            let before = token.range
            isEmpty = false
            do throws(Failure) {
                try matchItem(&match)
            } catch {
                recover()
            }
            skipIfStuck(at: before)
        }
        if isEmpty {
            issues.error("The 'match' body must contain at least one declaration.", at: token.range)
        }
        try endBlock()
        return match
    }

    private mutating func matchItem(_ match: inout MatchDeclaration) throws(Failure) {
        switch token.kind {
        case .identifier("function"): match.functions.append(try function())
        case .identifier("match"), .symbol(.slash): match.rules.append(.match(try self.match()))
        case .identifier("allow"): match.rules.append(.allow(try allow()))
        default: throw unexpected()
        }
    }

    private mutating func allow() throws(Failure) -> AllowDeclaration {
        let start = token.range
        advance()
        var methods: [AllowDeclaration.Method] = []
        guard case .identifier = token.kind, !token.isStatementWord else {
            issues.error("Expected at least one 'operation' after 'allow'.", at: token.range)
            throw Failure()
        }
        repeat {
            let (name, range) = try identifier()
            methods.append(AllowDeclaration.Method(name: name, range: range))
        } while take(.comma)
        var allow = AllowDeclaration(methods: methods, range: start)
        if take(.colon) {
            allow.condition = try condition()
        } else if token.kind == .keyword(.if) {
            issues.error("Missing ':' before 'if' condition.", at: token.range)
            allow.condition = try condition()
        }
        _ = take(.semicolon)
        return allow
    }

    private mutating func condition() throws(Failure) -> Expression? {
        if token.kind == .keyword(.if) {
            advance()
            if !startsExpression {
                issues.error("Missing conditional expression after 'if'.", at: token.range)
                if isAt(.semicolon) || isAt(.rightBrace) { return nil }
                if token.isWord("match") || token.isWord("function") || token.isWord("allow") { throw Failure() }
                throw unexpected()
            }
        } else if startsExpression {
            issues.error("Missing 'if' before conditional expression.", at: token.range)
        } else {
            throw unexpected()
        }
        return try expression()
    }

    // MARK: Functions

    private mutating func function() throws(Failure) -> FunctionDeclaration {
        advance()
        let (name, nameRange) = try identifier()
        try expect(.leftParenthesis)
        var parameters: [FunctionDeclaration.Parameter] = []
        if !isAt(.rightParenthesis) {
            repeat {
                let (name, range) = try identifier()
                parameters.append(FunctionDeclaration.Parameter(name: name, range: range))
            } while take(.comma)
        }
        try expect(.rightParenthesis)
        try expect(.leftBrace)
        if isAt(.rightBrace) {
            issues.error("Missing 'function' body", at: token.range)
            advance()
            throw Failure()
        }
        do throws(Failure) {
            let variables = try variables()
            guard token.kind == .keyword(.return) else { throw unexpected() }
            advance()
            let result = try expression()
            _ = take(.semicolon)
            try expect(.rightBrace)
            return FunctionDeclaration(
                name: name, nameRange: nameRange, parameters: parameters, variables: variables, result: result)
        } catch {
            skipBlock()
            throw error
        }
    }

    private mutating func variables() throws(Failure) -> [FunctionDeclaration.Variable] {
        var variables: [FunctionDeclaration.Variable] = []
        while token.kind == .keyword(.let) {
            advance()
            let (name, range) = try identifier()
            try expect(.assign)
            let value = try expression()
            variables.append(FunctionDeclaration.Variable(name: name, value: value, range: range))
            if !take(.semicolon) { issues.error("missing ';' at '\(tokenString)'", at: token.range) }
        }
        return variables
    }
}
