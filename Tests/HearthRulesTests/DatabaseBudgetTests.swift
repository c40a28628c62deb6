import HearthModel
import HearthTree
import Testing

@testable import HearthRules

/// Every bound of the Realtime Database's rules, and its violation.
@Suite struct DatabaseBudgetTests {
    private static func refusal(of expression: String) -> String? {
        databaseRefusal(#"{"rules":{".write":"# + quoted(expression) + "}}").map { string in
            String(string.split(separator: " ", maxSplits: 1)[1])
        }
    }

    @Test func documentSize() {
        let frame = #"{"rules":{}}"#
        let capacity = TreeRulesLimits.documentSizeBytesMax - frame.utf8.count
        #expect(databaseRefusal(frame + String(repeating: " ", count: capacity)) == nil)
        #expect(
            databaseRefusal(frame + String(repeating: " ", count: capacity + 1))
                == "1:1: Rules are too large: 262145 bytes of at most 262144.")
    }

    @Test func documentDepth() {
        func document(_ depth: Int) -> String {
            // One level is the object around "rules".
            #"{"rules":"# + String(repeating: #"{"a":"#, count: depth - 2) + "{}"
                + String(repeating: "}", count: depth - 1)
        }
        #expect(databaseRefusal(document(TreeRulesLimits.documentDepthMax)) == nil)
        #expect(
            databaseRefusal(document(TreeRulesLimits.documentDepthMax + 1))?.hasSuffix(
                "Rules are nested too deeply: at most 100 levels.") == true)
        let arrays = #"{"rules":{".indexOn":"# + String(repeating: "[", count: 100_000)
        #expect(databaseRefusal(arrays)?.hasSuffix("Rules are nested too deeply: at most 100 levels.") == true)
    }

    static let nested: [(String, @Sendable (Int) -> String, Int)] = [
        ("parentheses", { String(repeating: "(", count: $0) + "true" + String(repeating: ")", count: $0) }, 99),
        ("negations", { String(repeating: "!", count: $0) + "true" }, 99),
        ("signs", { String(repeating: "- ", count: $0) + "1 == 1" }, 99),
        ("branches", { String(repeating: "true ? true : ", count: $0) + "true" }, 99),
        (
            "arguments",
            { String(repeating: "root.child(", count: $0) + "'a'" + String(repeating: ").val()", count: $0) + " == 1" },
            99
        ),
        ("members", { "auth" + String(repeating: ".a", count: $0) + " == 1" }, 398),
        ("parents", { "data" + String(repeating: ".parent()", count: $0) + ".exists()" }, 198),
        ("sums", { "1" + String(repeating: " + 1", count: $0) + " == 1" }, 398),
    ]

    @Test(arguments: nested)
    func nesting(_ name: String, _ expression: @Sendable (Int) -> String, _ countMax: Int) throws {
        #expect(Self.refusal(of: expression(countMax)) == nil, "\(name)")
        #expect(Self.refusal(of: expression(countMax + 1)) == "Rule expression is nested too deeply.", "\(name)")
        #expect(Self.refusal(of: expression(10_000)) == "Rule expression is nested too deeply.", "\(name)")
        // An accepted expression can be evaluated.
        let rules = try databaseRules(#"{"rules":{".write":"# + quoted(expression(countMax)) + "}}")
        _ = try rules.maySet(.root, "1", in: .empty)
    }

    @Test func chainsOfAndAndOrMayBeLong() throws {
        let chain = Array(repeating: "$id != 'a'", count: 5000).joined(separator: " && ")
        let rules = try databaseRules(#"{"rules":{"$id":{".write":""# + chain + #""}}}"#)
        #expect(try rules.maySet("b", "1", in: .empty))
        #expect(try !rules.maySet("a", "1", in: .empty))
    }

    @Test func patterns() {
        func document(_ count: Int) -> String {
            let rules = (0..<count).map { #""\#($0)":{".read":"auth.uid.matches(/a\#($0)/)"}"# }
            return #"{"rules":{"# + rules.joined(separator: ",") + "}}"
        }
        #expect(databaseRefusal(document(TreeRulesLimits.patternsMax)) == nil)
        #expect(
            databaseRefusal(document(TreeRulesLimits.patternsMax + 1))?.hasSuffix(
                "Too many regular expressions: at most 1000 different ones.") == true)
        // A pattern that is used again counts once.
        let same = (0..<3000).map { #""\#($0)":{".read":"auth.uid.matches(/a/)"}"# }.joined(separator: ",")
        #expect(databaseRefusal(#"{"rules":{"# + same + "}}") == nil)
    }

    @Test func stringsThatGrow() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{"sum":{".write":"(newData.val() + newData.val() + newData.val() + newData.val()).length > 0"},
              "replace":{".write":"newData.val().replace('a', newData.val()).length > 0"}}}
            """#)
        let long = quoted(String(repeating: "a", count: 5 << 20))
        #expect(try rules.maySet("sum", quoted("abc"), in: .empty))
        #expect(try !rules.maySet("sum", long, in: .empty))
        #expect(try rules.maySet("replace", quoted("abc"), in: .empty))
        #expect(try !rules.maySet("replace", long, in: .empty))
    }

    @Test func readsBeyondTheStepLimitAreUndecided() throws {
        let rules = try databaseRules(
            #"{"rules":{"a":{".read":"root.child('long').val().contains('b') == false"},"b":{".read":true}}}"#)
        let data: Node = ["long": Node(.string(String(repeating: "a", count: 100_000)))]
        func mayRead(_ path: TreePath, stepsMax: Int) throws -> Bool? {
            try rules.mayRead(path, query: nil, auth: nil, data: data, now: 0, stepsMax: stepsMax)
        }
        #expect(try mayRead("a", stepsMax: 1000) == nil)
        #expect(try mayRead("a", stepsMax: 100_000) == true)
        #expect(try mayRead("b", stepsMax: 1000) == true)
        #expect(try mayRead("c", stepsMax: 1000) == false)
        #expect(try rules.mayRead("a", query: nil, auth: nil, data: data, now: 0))
    }

    /// Data that counts the reads of its values.
    private final class CountedValues: TreeData {
        let root: Node
        private(set) var valuesRead = 0

        init(_ root: Node) { self.root = root }

        func value(at path: TreePath) -> Scalar? {
            valuesRead += 1
            return root.value(at: path)
        }

        func leaf(at path: TreePath) -> Leaf? { root.leaf(at: path) }
        func priority(at path: TreePath) -> Scalar? { root.priority(at: path) }
        func hasChildren(at path: TreePath) -> Bool { root.hasChildren(at: path) }
        func exists(at path: TreePath) -> Bool { root.exists(at: path) }
        func node(at path: TreePath) -> Node { root.node(at: path) }
    }

    @Test func aLongStringIsReadWhenItIsNeededAndEnoughStepsAreLeft() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{"text":{".read":"root.child('long').val().contains('b') == false"},
              "kind":{".read":"root.child('long').isString() && !root.child('long').isNumber() && root.child('long').exists()"},
              "short":{".read":"root.child('short').val().contains('b') == false"}}}
            """#)
        let data = CountedValues([
            "long": Node(.string(String(repeating: "a", count: 1 << 20))),
            "short": Node(.string(String(repeating: "a", count: Leaf.stringSizeBytesMax))),
        ])
        func mayRead(_ path: TreePath, stepsMax: Int) throws -> Bool? {
            try rules.mayRead(path, query: nil, auth: nil, data: data, now: 0, stepsMax: stepsMax)
        }
        #expect(try mayRead("text", stepsMax: 10_000) == nil)
        #expect(try mayRead("kind", stepsMax: 100) == true)
        #expect(try mayRead("short", stepsMax: 100) == true)
        #expect(data.valuesRead == 0)
        #expect(try mayRead("text", stepsMax: 200_000) == true)
        #expect(data.valuesRead == 1)
    }

    @Test func decisionsThatNeverEnd() throws {
        // A long string at another location, which the rule of each of many children reads.
        let rules = try databaseRules(
            #"""
            {"rules":{".write":true,"list":{"$k":{".validate":"!root.child('long').val().contains('b')"}}}}
            """#)
        func judge(_ node: Node, _ data: Node, stepsMax: Int) throws -> TreeVerdict {
            let changes = [TreeChange(path: "list", node: node)]
            let after = TreeOverlay(base: data, changes: changes)
            return try TreeJudge(
                rules,
                TreeEvaluation(before: data, after: after, query: nil, auth: nil, now: 0, stepsMax: stepsMax)
            ).mayWrite(changes)
        }
        let size = 100_000
        let stepsMax = 100 * size / TreeRulesLimits.stringBytesPerStep
        let data: Node = ["long": Node(.string(String(repeating: "a", count: size)))]
        let few = Node(children: (0..<10).map { (TreeKey($0), Node(1)) })
        let many = Node(children: (0..<1000).map { (TreeKey($0), Node(1)) })
        #expect(try judge(few, data, stepsMax: stepsMax).isAllowed)
        guard case .denied(let denial) = try judge(many, data, stepsMax: stepsMax) else {
            Issue.record("the write is allowed")
            return
        }
        #expect(denial.description.hasPrefix("the rules take too long for this write, at /list/"))
        #expect(try judge(many, ["long": "short"], stepsMax: stepsMax).isAllowed)
        // Public data has a bound, too.
        let all = Node(children: (0..<300_000).map { (TreeKey($0), Node(1)) })
        let slow = try databaseRules(
            #"{"rules":{".write":true,"list":{"$k":{".validate":"!root.child('x').exists()"#
                + String(repeating: " && !root.child('x').exists()", count: 5) + #""}}}}"#)
        #expect(try !slow.mayWrite([TreeChange(path: "list", node: all)], to: .empty).isAllowed)
    }

    @Test func hostileKeysInPaths() throws {
        let rules = try databaseRules(
            #"{"rules":{".write":"!data.child(newData.child('path').val()).exists()"}}"#)
        // A path of the maximum depth may exist; a deeper one, or a longer key, cannot.
        for path in [
            String(repeating: "a/", count: 5_000_000), String(repeating: "k", count: 5_000_000),
            String(repeating: "/", count: 9_000_000), "a\u{0}b", "\u{FFFD}", String(repeating: "../", count: 1_000_000),
        ] {
            let isRoot = path.utf8.allSatisfy { $0 == UInt8(ascii: "/") }
            let node: Node = ["path": Node(.string(path))]
            #expect(try rules.mayWrite([TreeChange(path: .root, node: node)], to: ["x": 1]).isAllowed == !isRoot)
        }
    }
}

extension Node: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (TreeKey, Node)...) { self.init(children: elements) }
}
