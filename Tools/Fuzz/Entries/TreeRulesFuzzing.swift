import HearthRules
import HearthModel
import HearthTree

/// Entry points for fuzzing: any bytes compile or are rejected with a reason and a position, and evaluation ends. A
/// violated invariant traps, which the fuzzer detects.
package enum TreeRulesFuzzing {
    /// Uses the bytes as a document, an expression, a pattern, and the path of a child.
    package static func fuzz(_ bytes: [UInt8]) {
        compile(bytes)
        var string: [UInt8] = []
        TreeJSON.appendString(String(decoding: bytes, as: UTF8.self), to: &string)
        compile(Array(#"{"rules":{"items":{"$id":{".read":"#.utf8) + string + Array("}}}}".utf8))
        compile(
            Array(#"{"rules":{".write":true,"items":{"$id":{".validate":"#.utf8) + string + Array("}}}}".utf8))
        fuzzPattern(String(decoding: bytes, as: UTF8.self))
        fuzzPaths(String(decoding: bytes, as: UTF8.self))
    }

    private static func compile(_ string: [UInt8]) {
        let ruleset: TreeRuleset
        do throws(TreeRulesError) {
            ruleset = try TreeRuleset.compile(string)
        } catch {
            precondition(!error.message.isEmpty, "rules are refused without a reason")
            let lines = string.count { $0 == UInt8(ascii: "\n") } + 1
            precondition(
                (1...lines).contains(error.line) && (1...string.count + 1).contains(error.column),
                "an error's position is outside of the rules: \(error)")
            return
        }
        _ = ruleset.indexDefinitions
        for auth in auths {
            for path in paths {
                precondition(judge(ruleset, path, auth) == judge(ruleset, path, auth), "a verdict isn't the same again")
            }
        }
    }

    /// The results for a read and for writes of a location.
    private static func judge(_ ruleset: TreeRuleset, _ path: TreePath, _ auth: TreeAuth?) -> [Bool] {
        do throws(Status) {
            var verdicts = [
                try ruleset.mayRead(path, query: nil, auth: auth, data: data, now: 1),
                try ruleset.mayRead(path, query: query, auth: auth, data: data, now: 1),
            ]
            let priority = TreeChange(path: path.child(.priority), node: Node(3))
            for changes in [
                [TreeChange(path: path, node: value)], [TreeChange(path: path, node: .empty)],
                [priority, TreeChange(path: "other", node: Node(true))],
            ] {
                let after = TreeOverlay(base: data, changes: changes)
                let verdict = try ruleset.mayWrite(changes, auth: auth, before: data, after: after, now: 1)
                if case .denied(let denial) = verdict { precondition(!denial.description.isEmpty) }
                verdicts.append(verdict.isAllowed)
            }
            return verdicts
        } catch {
            preconditionFailure("a tree in memory can't be read: \(error)")
        }
    }

    private static func fuzzPattern(_ string: String) {
        for flags in ["", "i"] {
            guard let pattern = try? TreePattern(string, flags: flags, at: 0) else { continue }
            _ = pattern.isFound(in: "aab\u{e9}\u{1F600} 12@example.org/")
        }
        let search = TextSearch(string)
        precondition(search.isFound(in: "x" + string + "y"), "a string isn't found in one that contains it")
        precondition(
            string.isEmpty || search.replacing(in: string + string, with: "", sizeMax: 1 << 20) == "",
            "a string isn't replaced")
    }

    private static func fuzzPaths(_ string: String) {
        let child = TreeSnapshot(isNew: false, keys: ["a"]).child(string)
        precondition(child.keys.count <= TreeLimits.standard.depthMax && child.keys.first == "a")
        precondition(child.keys.allSatisfy(TreeLimits.standard.isValid), "an invalid path is accepted")
        precondition(child.parent != nil, "a child is the root")
    }

    private static let data = inner(["items": inner(["a": value, "b": Node("text", priority: 1)]), "x": Node(1.5)])
    private static let value = inner(
        ["n": Node(5), "s": Node("some text"), "t": Node(true), "o": inner(["x": Node(1), "0": Node("zero")])],
        priority: "p")

    private static func inner(_ children: KeyValuePairs<TreeKey, Node>, priority: Scalar? = nil) -> Node {
        Node(children: children.map { ($0.key, $0.value) }, priority: priority)
    }

    private static let auths: [TreeAuth?] = [
        nil, ["uid": "a", "provider": "custom", "token": ["sub": "a", "list": ["x", 1], "admin": true, "n": 1.5]],
    ]
    private static let paths: [TreePath] = [.root, "items/a", "items/a/o/x", "elsewhere"]
    private static let query: TreeQuery = {
        var query = TreeQuery()
        query.index = .child("owner/id")
        query.start = TreeQuery.Bound(value: "a", key: .min)
        query.end = TreeQuery.Bound(value: "a", key: .max)
        query.limit = 10
        return query
    }()
}
