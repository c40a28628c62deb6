import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthRules

/// Decisions on random trees, rules and changes, compared with those of a simple model, which follows the documentation
/// location by location and shares nothing.
@Suite struct DatabaseJudgeModelTests {
    private static let keys = ["a", "b", "0", "x"]
    private static let expressions = [
        "true", "true", "false", "newData.exists()", "!data.exists()", "newData.hasChildren()", "newData.isNumber()",
        "newData.child('a').val() != 1", "newData.parent().child('b').exists()", "root.child('a/b').exists()",
        "newData.val() != 2", "data.val() == null || newData.val() == 1", "newData.getPriority() == null",
        "newData.child('b').hasChildren() || newData.hasChild('x')", "newData.parent().parent().hasChildren(['a'])",
        "auth != null", "data.parent().hasChildren()", "newData.child('0/a').val() == data.child('0/a').val()",
    ]

    private struct Source {
        var random: SeededGenerator

        mutating func chance(_ outOf: Int) -> Bool { Int.random(in: 0..<outOf, using: &random) == 0 }
        mutating func key() -> String { keys.randomElement(using: &random) ?? "a" }

        mutating func rules(_ depth: Int, _ wildcards: [String]) -> String {
            var members: [String] = []
            for (kind, outOf) in [("write", 3), ("validate", 2)] where chance(outOf) {
                var expression = expressions.randomElement(using: &random) ?? "true"
                if let wildcard = wildcards.last, chance(4) { expression = "\(wildcard) != 'a' && \(expression)" }
                members.append("\".\(kind)\":\(quoted(expression))")
            }
            if depth > 0 {
                for key in keys where chance(3) { members.append("\"\(key)\":\(rules(depth - 1, wildcards))") }
                if chance(2) {
                    let name = "$w\(wildcards.count)"
                    members.append("\"\(name)\":\(rules(depth - 1, wildcards + [name]))")
                }
            }
            return "{\(members.joined(separator: ","))}"
        }

        mutating func node(_ depth: Int) -> Node {
            if depth == 0 || chance(3) {
                return chance(5)
                    ? .empty : Node(.integer(Int64.random(in: 1...2, using: &random)), priority: chance(6) ? 1 : nil)
            }
            return Node(
                children: keys.map { (TreeKey($0), chance(2) ? node(depth - 1) : .empty) },
                priority: chance(6) ? 1 : nil)
        }

        mutating func changes() -> [TreeChange] {
            (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let path = TreePath(keys: (0..<Int.random(in: 0...4, using: &random)).map { _ in TreeKey(key()) })
                if chance(6) { return TreeChange(path: path.child(.priority), node: chance(2) ? .empty : 1) }
                return TreeChange(path: path, node: node(2))
            }
        }
    }

    /// The steps of the documentation.
    private struct Model {
        let rules: TreeRuleset
        let before: Node
        let after: Node
        let auth: TreeAuth?

        private func holds(_ rule: TreeRule, at path: TreePath) throws -> Bool {
            let evaluation = TreeEvaluation(before: before, after: after, query: nil, auth: auth, now: 0)
            evaluation.keys = path.keys
            for depth in 0..<path.count {
                let parent = try #require(rules.root.node(at: TreePath(keys: Array(path.keys[..<depth]))))
                if parent.children[path.keys[depth]] == nil { evaluation.captures.append(path.keys[depth]) }
            }
            return try evaluation.holds(rule.expression)
        }

        private func isValid(_ path: TreePath) throws -> Bool {
            if after.node(at: path).isEmpty { return true }
            guard let rule = rules.root.node(at: path)?.validate else { return true }
            return try holds(rule, at: path)
        }

        private func isValid(below path: TreePath) throws -> Bool {
            for (key, _) in after.node(at: path).children {
                guard try isValid(path.child(key)), try isValid(below: path.child(key)) else { return false }
            }
            return true
        }

        func allows(_ change: TreeChange) throws -> Bool {
            let location = change.location
            let prefixes = (0...location.count).map { TreePath(keys: Array(location.keys[..<$0])) }
            let grants = try prefixes.contains { path in
                guard let rule = rules.root.node(at: path)?.write else { return false }
                return try holds(rule, at: path)
            }
            guard grants, try prefixes.allSatisfy({ try isValid($0) }) else { return false }
            return try change.isPriority || isValid(below: location)
        }
    }

    @Test(arguments: [UInt64.random(in: 1...UInt64.max), 1, 2, 3])
    func decisions(seed: UInt64) throws {
        var source = Source(random: SeededGenerator(seed: seed))
        var counts = [true: 0, false: 0]
        for round in 0..<1000 {
            let string = #"{"rules":"# + source.rules(3, []) + "}"
            let rules = try databaseRules(string)
            let before = source.node(4)
            let changes = source.changes()
            let auth: TreeAuth? = source.chance(2) ? nil : databaseUser("a")
            let model = Model(rules: rules, before: before, after: before.applying(changes), auth: auth)
            let expected = try changes.allSatisfy(model.allows)
            counts[expected, default: 0] += 1
            let verdict = try rules.mayWrite(changes, to: before, auth: auth)
            #expect(verdict.isAllowed == expected, "seed \(seed), round \(round): \(string) \(changes) \(verdict)")
            if verdict.isAllowed != expected { return }
            // A possible write is never rejected before its data is known.
            guard expected else { continue }
            for change in changes {
                var scopes = [TreeWriteScope.location(change.path), .below(.root)]
                if !change.isPriority, let parent = change.path.parent {
                    scopes += [.child(of: parent), .below(parent)]
                }
                for scope in scopes {
                    #expect(rules.mayGrantWrite(scope, auth: auth), "seed \(seed), round \(round): \(string) \(scope)")
                }
            }
        }
        #expect(counts.values.allSatisfy { $0 > 20 }, "seed \(seed): \(counts)")
    }
}
