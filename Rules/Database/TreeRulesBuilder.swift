import HearthTree

/// Builds rules from a parsed document: checks keys and values, and compiles the expressions.
struct TreeRulesBuilder {
    private var patterns = TreePatternTable()
    /// The wildcards above and at the current node.
    private var wildcards: [String] = []

    static func build(_ document: RulesJSON) throws(TreeSyntaxError) -> TreeRulesNode {
        var builder = TreeRulesBuilder()
        guard case .object(let members) = document.content else {
            throw TreeSyntaxError("Expected '{'.", at: document.offset)
        }
        guard let rules = members.first, TreeKey(rules.name.string) == "rules" else {
            throw TreeSyntaxError(
                "Expected the key \"rules\".", at: members.first?.name.offset ?? document.offset)
        }
        guard members.count == 1 else {
            throw TreeSyntaxError("Expected nothing beside the key \"rules\".", at: members[1].name.offset)
        }
        return try builder.node(rules.value)
    }

    private init() {}

    // MARK: Nodes

    private mutating func node(_ json: RulesJSON) throws(TreeSyntaxError) -> TreeRulesNode {
        guard case .object(let members) = json.content else { throw TreeSyntaxError("Expected '{'.", at: json.offset) }
        var read: TreeRule?
        var write: TreeRule?
        var validate: TreeRule?
        var indexes: [TreeQuery.Index] = []
        var children: [TreeKey: TreeRulesNode] = [:]
        var wildcard: (name: String, node: TreeRulesNode)?
        var names: Set<TreeKey> = []
        for member in members {
            let name = TreeKey(member.name.string)
            if let wildcard, name.string.utf8.first == UInt8(ascii: "$") {
                throw TreeSyntaxError(
                    "Cannot have multiple default rules ('\(wildcard.name)' and '\(name.string)').",
                    at: member.name.offset)
            }
            guard names.insert(name).inserted else {
                throw TreeSyntaxError("Duplicate key '\(name.string)'.", at: member.name.offset)
            }
            switch name {
            case ".read": read = try rule(member.value, .read)
            case ".write": write = try rule(member.value, .write)
            case ".validate": validate = try rule(member.value, .validate)
            case ".indexOn": indexes = try self.indexes(member.value)
            default:
                guard case .object = member.value.content else {
                    throw TreeSyntaxError("Expected '{'.", at: member.value.offset)
                }
                if name.string.utf8.first == UInt8(ascii: "$") {
                    wildcard = (name.string, try wildcardNode(name.string, member))
                } else {
                    try Self.check(name.string, at: member.name.offset)
                    children[name] = try node(member.value)
                }
            }
        }
        return TreeRulesNode(
            read: read, write: write, validate: validate, indexes: indexes, children: children, wildcard: wildcard)
    }

    private mutating func wildcardNode(
        _ name: String, _ member: RulesJSON.Member
    ) throws(TreeSyntaxError) -> TreeRulesNode {
        try Self.check(String(name.dropFirst()), at: member.name.offset)
        if wildcards.contains(where: { TreeKey($0) == TreeKey(name) }) {
            throw TreeSyntaxError(
                "The name '\(name)' is already that of a default rule above.", at: member.name.offset)
        }
        wildcards.append(name)
        defer { wildcards.removeLast() }
        return try node(member.value)
    }

    private static func check(_ key: String, at offset: Int) throws(TreeSyntaxError) {
        guard TreeLimits.standard.isValid(TreeKey(key)) else {
            throw TreeSyntaxError("String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\"", at: offset)
        }
    }

    // MARK: Values

    private mutating func rule(
        _ json: RulesJSON, _ kind: TreeExpressionCompiler.Kind
    ) throws(TreeSyntaxError) -> TreeRule {
        let expression: TreeExpression
        switch json.content {
        case .bool(let value): expression = .constant(.bool(value))
        case .string(let string): expression = try compile(string, kind)
        case .object, .array, .other:
            throw TreeSyntaxError(
                "Invalid rule expression.  Expected 'true', 'false', or an expression string.", at: json.offset)
        }
        return TreeRule(expression: expression, offset: json.offset)
    }

    /// Errors in an expression are reported with their offset in the document.
    private mutating func compile(
        _ string: RulesText, _ kind: TreeExpressionCompiler.Kind
    ) throws(TreeSyntaxError) -> TreeExpression {
        var compiler = TreeExpressionCompiler(kind: kind, wildcards: wildcards, patterns: patterns)
        defer { patterns = compiler.patterns }
        do throws(TreeSyntaxError) {
            return try compiler.rule(try TreeExpressionParser.parse(string.bytes))
        } catch {
            throw TreeSyntaxError(error.message, at: string.documentOffset(error.offset))
        }
    }

    private func indexes(_ json: RulesJSON) throws(TreeSyntaxError) -> [TreeQuery.Index] {
        let error = TreeSyntaxError(
            "Invalid indexOn expression. Must be either a string or an array of strings", at: json.offset)
        switch json.content {
        case .string(let string): return [try index(string)]
        case .array(let items):
            var indexes: [TreeQuery.Index] = []
            for item in items {
                guard case .string(let string) = item.content else { throw error }
                let index = try index(string)
                if !indexes.contains(index) { indexes.append(index) }
            }
            return indexes
        case .object, .bool, .other: throw error
        }
    }

    private func index(_ string: RulesText) throws(TreeSyntaxError) -> TreeQuery.Index {
        if TreeKey(string.string) == ".value" { return .value }
        let path = TreePath(string.string)
        if path.isRoot { throw TreeSyntaxError("An index can't be on an empty path.", at: string.offset) }
        for key in path.keys { try Self.check(key.string, at: string.offset) }
        return .child(path)
    }
}
