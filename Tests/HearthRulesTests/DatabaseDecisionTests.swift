import HearthModel
import HearthTree
import Testing

@testable import HearthRules

/// Decisions on reads and writes.
@Suite struct DatabaseDecisionTests {
    // MARK: Reading

    @Test func readIsGrantedFromAboveAndNeverRevoked() throws {
        let rules = try databaseRules(
            #"{"rules":{"a":{".read":"auth != null","b":{".read":false,"c":{".read":true}}},"d":{"e":{".read":true}}}}"#
        )
        let alice = databaseUser("alice")
        #expect(try rules.mayRead("a/b", in: .empty, auth: alice))
        #expect(try rules.mayRead("a/b/c/d/e", in: .empty, auth: alice))
        #expect(try !rules.mayRead("a/b", in: .empty))
        // A deeper grant only opens the locations below it.
        #expect(try rules.mayRead("a/b/c", in: .empty))
        #expect(try rules.mayRead("a/b/c/x", in: .empty))
        #expect(try !rules.mayRead("d", in: .empty))
        #expect(try !rules.mayRead(.root, in: .empty))
        #expect(try !rules.mayRead("nothing/here", in: .empty, auth: alice))
    }

    @Test func anErrorInOneReadDoesNotAffectTheOthers() throws {
        let rules = try databaseRules(
            #"{"rules":{".read":"data.child('n').val() > 1","a":{".read":"auth.uid.contains('x')","b":{".read":true}}}}"#
        )
        #expect(try rules.mayRead("a/b", in: .empty))
        #expect(try !rules.mayRead("a", in: .empty))
        #expect(try rules.mayRead("a", in: tree(#"{"n":2}"#)))
    }

    @Test func anEmptyDocumentDeniesAll() throws {
        let rules = try databaseRules(#"{"rules":{}}"#)
        #expect(try !rules.mayRead(.root, in: .empty, auth: databaseUser("a")))
        #expect(try !rules.mayRead("a", in: .empty))
        #expect(try !rules.maySet("a", "1", in: .empty))
        #expect(try !rules.maySet("a", "null", in: .empty))
        #expect(try TreeRuleset.open.mayRead("a", in: .empty) && TreeRuleset.open.maySet("a", "1", in: .empty))
        #expect(try !TreeRuleset.locked.mayRead("a", in: .empty) && !TreeRuleset.locked.maySet("a", "1", in: .empty))
    }

    @Test func aNameOverridesTheWildcardCompletely() throws {
        let rules = try databaseRules(
            #"{"rules":{"$a":{"x":{".read":true},"$b":{".read":"$a == 'p' && $b == 'q'"}},"named":{"y":{".read":true}}}}"#
        )
        #expect(try rules.mayRead("p/x", in: .empty))
        #expect(try rules.mayRead("p/q", in: .empty))
        #expect(try !rules.mayRead("p/r", in: .empty))
        #expect(try rules.mayRead("named/y", in: .empty))
        #expect(try !rules.mayRead("named/x", in: .empty))
        // Names are compared as bytes.
        let accents = try databaseRules("{\"rules\":{\"\u{e9}\":{\".read\":true}}}")
        #expect(try accents.mayRead("\u{e9}", in: .empty))
        #expect(try !accents.mayRead("e\u{301}", in: .empty))
    }

    @Test func snapshotsBelongToTheRulesNode() throws {
        let rules = try databaseRules(
            #"{"rules":{".read":"data.child('open').val() == true","a":{".read":"data.child('open').val() == true"}}}"#)
        #expect(try rules.mayRead("a/b", in: tree(#"{"open":true}"#)))
        #expect(try rules.mayRead("a/b", in: tree(#"{"a":{"open":true}}"#)))
        #expect(try !rules.mayRead("a/b", in: tree(#"{"a":{"b":{"open":true}}}"#)))
    }

    // MARK: Writing

    @Test func writeIsGrantedFromAbove() throws {
        let rules = try databaseRules(
            #"{"rules":{"a":{".write":"auth != null","b":{".write":false}},"c":{"d":{".write":true}}}}"#)
        let alice = databaseUser("alice")
        #expect(try rules.maySet("a/b", "1", in: .empty, auth: alice))
        #expect(try !rules.maySet("a/b", "1", in: .empty))
        #expect(try rules.maySet("c/d/e/f", "1", in: .empty))
        #expect(try !rules.maySet("c", #"{"d":1}"#, in: .empty))
        #expect(try !rules.maySet("c/x", "1", in: .empty))
        #expect(try rules.maySet("c/d", "null", in: tree(#"{"c":{"d":1}}"#)))
    }

    @Test func newDataIsTheWholeNewTree() throws {
        let rules = try databaseRules(
            #"{"rules":{".write":"newData.child('owner').val() == auth.uid && data.child('owner').val() != 'bob'"}}"#)
        let data = try tree(#"{"owner":"alice","x":1}"#)
        #expect(try rules.maySet("x", "2", in: data, auth: databaseUser("alice")))
        #expect(try !rules.maySet("x", "2", in: data, auth: databaseUser("bob")))
        #expect(try rules.maySet("owner", #""bob""#, in: data, auth: databaseUser("bob")))
        #expect(try !rules.maySet(.root, #"{"x":2}"#, in: data, auth: databaseUser("alice")))
    }

    @Test func everyValidateOnThePathAndBelowMustHold() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{".write":true,"room":{
                ".validate":"newData.hasChildren(['name'])",
                "name":{".validate":"newData.isString()"},
                "$key":{".validate":"newData.isNumber()","deep":{".validate":false}},
                "free":{"x":{".validate":"newData.val() == 1"}}}}}
            """#)
        let room = try tree(#"{"room":{"name":"n","a":1}}"#)
        #expect(try rules.maySet("room/a", "2", in: room))
        #expect(try !rules.maySet("room/a", "true", in: room))
        #expect(try rules.maySet("room", #"{"name":"n","b":2}"#, in: room))
        #expect(try !rules.maySet("room", #"{"name":"n","b":"x"}"#, in: room))
        #expect(try !rules.maySet("room", #"{"name":1}"#, in: room))
        #expect(try !rules.maySet("room", #"{"b":2}"#, in: room))
        #expect(try !rules.maySet(.root, #"{"room":{"b":2}}"#, in: room))
        // Rules of ancestors count, for a delete too, while the ancestors exist.
        #expect(try !rules.maySet("room/name", "null", in: room))
        #expect(try rules.maySet("room/a", "null", in: room))
        #expect(try rules.maySet("room", "null", in: room))
        #expect(try rules.maySet("room/name", "null", in: tree(#"{"room":{"name":"n"}}"#)))
        #expect(try !rules.maySet("room/a", "1", in: .empty))
        // A name overrides the wildcard for validates, too.
        #expect(try rules.maySet("room/free", #"{"x":1,"y":"any"}"#, in: room))
        #expect(try !rules.maySet("room/free", #"{"x":2}"#, in: room))
        #expect(try rules.maySet("room/free/y", #""any""#, in: room))
        // Below a location that no rule names nothing is evaluated.
        #expect(try rules.maySet("elsewhere", #"{"name":1}"#, in: room))
        #expect(try !rules.maySet("room/a/deep", "1", in: room))
        #expect(try rules.maySet("room/a/deep", "null", in: room))
        #expect(try rules.maySet("room/a", "{}", in: room))
    }

    @Test func writtenValuesAreValidatedAndSiblingsAreNot() throws {
        let rules = try databaseRules(
            #"{"rules":{".write":true,"a":{".validate":"newData.isString()"},"b":{}}}"#)
        let data = try tree(#"{"a":1}"#)
        #expect(try rules.maySet("b", "2", in: data))
        #expect(try !rules.maySet(.root, #"{"a":1,"b":2}"#, in: data))
    }

    @Test func undeclaredChildrenAreAcceptedUnlessForbidden() throws {
        let lax = try databaseRules(#"{"rules":{".write":true,"a":{}}}"#)
        #expect(try lax.maySet("x/y", "1", in: .empty))
        let strict = try databaseRules(
            #"{"rules":{".write":true,".validate":"newData.hasChild('a')","a":{},"$other":{".validate":false}}}"#)
        #expect(try strict.maySet(.root, #"{"a":1}"#, in: .empty))
        #expect(try strict.maySet(.root, #"{"a":{"b":{"c":1}}}"#, in: .empty))
        #expect(try !strict.maySet(.root, #"{"a":1,"x":1}"#, in: .empty))
        #expect(try strict.maySet("x", "null", in: tree(#"{"a":1,"x":1}"#)))
    }

    @Test func anErrorInAValidateDenies() throws {
        let rules = try databaseRules(#"{"rules":{".write":true,"a":{".validate":"newData.val().length > 2"}}}"#)
        #expect(try rules.maySet("a", #""abc""#, in: .empty))
        #expect(try !rules.maySet("a", "1", in: .empty))
    }

    @Test func denialsStateTheirReason() throws {
        let rules = try databaseRules(
            "{\"rules\":{\"a\":{\".write\":true,\n\"b\":{\".validate\":false}}}}")
        func denial(_ path: TreePath) throws -> String? {
            let verdict = try rules.mayWrite([TreeChange(path: path, node: Node(1))], to: .empty)
            guard case .denied(let denial) = verdict else { return nil }
            return denial.description
        }
        #expect(try denial("a/b") == "the .validate rule in line 2, column 18 fails for /a/b")
        #expect(try denial("a/b/c") == "the .validate rule in line 2, column 18 fails for /a/b")
        #expect(try denial("x") == "no .write rule at /x or above it holds")
        #expect(try denial("a/c") == nil)
    }

    // MARK: Priorities

    @Test func priorities() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{"a":{".write":"auth != null",".validate":"newData.getPriority() == now || !newData.isString()",
                "x":{".validate":"false"}},"$k":{"b":{".write":true,".validate":"newData.getPriority() != null"}}}}
            """#)
        let alice = databaseUser("alice")
        let data = try tree(#"{"a":"text","c":{"b":{".value":1,".priority":2}},"d":1}"#)
        func may(_ path: TreePath, _ priority: Node, auth: TreeAuth? = alice) throws -> Bool {
            try rules.mayWrite([TreeChange(path: path.child(.priority), node: priority)], to: data, auth: auth)
                .isAllowed
        }
        #expect(try may("a", Node(.integer(databaseNow))))
        #expect(try !may("a", Node(.integer(databaseNow)), auth: nil))
        #expect(try !may("a", Node(5)))
        #expect(try may("c/b", Node("p"), auth: nil))
        #expect(try !may("c/b", .empty, auth: nil))
        #expect(try !may("d", Node(1)))
        // A priority alone evaluates nothing below its node.
        let inner = try data.setting("a" as TreePath, to: tree(#"{"x":1}"#))
        let change = TreeChange(path: "a/.priority", node: Node(1))
        #expect(try rules.mayWrite([change], to: inner, auth: alice).isAllowed)
        #expect(try !rules.maySet("a", #"{"x":1,".priority":1}"#, in: inner, auth: alice))
    }

    // MARK: Several locations

    private static let votes = #"""
        {"rules":{"polls":{"$poll":{"$choice":{".write":"auth != null",
            ".validate":"newData.isNumber() && newData.parent().parent().parent().child('voted').child($poll).child(auth.uid).val() == $choice"}}},
          "voted":{"$poll":{"$user":{".write":"auth.uid == $user && !data.exists()",
            ".validate":"newData.parent().parent().parent().child('polls').child($poll).child(newData.val()).val() == root.child('polls').child($poll).child(newData.val()).val() + 1"}}}}}
        """#

    @Test func severalLocationsAreDecidedTogether() throws {
        let rules = try databaseRules(Self.votes)
        let data = try tree(#"{"polls":{"p":{"yes":3,"no":1}}}"#)
        func may(_ changes: [(TreePath, Node)], as uid: String = "alice") throws -> Bool {
            try rules.mayWrite(
                changes.map { TreeChange(path: $0.0, node: $0.1) }, to: data, auth: databaseUser(uid)
            ).isAllowed
        }
        #expect(try may([("polls/p/yes", 4), ("voted/p/alice", "yes")]))
        #expect(try may([("voted/p/alice", "yes"), ("polls/p/yes", 4)]))
        #expect(try !may([("polls/p/yes", 5), ("voted/p/alice", "yes")]))
        #expect(try !may([("polls/p/no", 2), ("voted/p/alice", "yes")]))
        #expect(try !may([("polls/p/yes", 4)]))
        #expect(try !may([("voted/p/alice", "yes")]))
        #expect(try !may([("polls/p/yes", 4), ("voted/p/bob", "yes")]))
        // One failure denies all changes.
        #expect(try !may([("polls/p/yes", 4), ("voted/p/alice", "yes"), ("other", 1)]))
    }

    @Test func aGrantAboveCoversAllLocations() throws {
        let rules = try databaseRules(
            #"{"rules":{"a":{".write":true,"n":{".validate":"newData.isNumber()"}},"b":{".write":"auth != null"}}}"#)
        func may(_ changes: [(TreePath, Node)]) throws -> Bool {
            try rules.mayWrite(changes.map { TreeChange(path: $0.0, node: $0.1) }, to: .empty).isAllowed
        }
        #expect(try may([("a/x/y", 1), ("a/z", "s"), ("a/n", 1)]))
        #expect(try !may([("a/x/y", 1), ("a/n", "s")]))
        #expect(try !may([("a/x/y", 1), ("b", 1)]))
        #expect(try may([]))
    }

    @Test func overlappingChangesAreValidatedByTheirResult() throws {
        // The writes of a lost connection are one commit.
        let rules = try databaseRules(
            #"{"rules":{".write":true,"a":{".validate":"newData.child('n').isNumber()","n":{".validate":"newData.val() < 5"}}}}"#
        )
        let changes = [
            TreeChange(path: "a", node: try tree(#"{"n":9}"#)), TreeChange(path: "a/n", node: 3),
        ]
        #expect(try rules.mayWrite(changes, to: .empty).isAllowed)
        #expect(try !rules.mayWrite(changes.reversed(), to: .empty).isAllowed)
    }

    // MARK: Unreadable data

    private struct Broken: TreeData {
        let status = Status(.unavailable, "broken")
        func value(at path: TreePath) throws(Status) -> Scalar? { throw status }
        func leaf(at path: TreePath) throws(Status) -> Leaf? { throw status }
        func priority(at path: TreePath) throws(Status) -> Scalar? { throw status }
        func hasChildren(at path: TreePath) throws(Status) -> Bool { throw status }
        func exists(at path: TreePath) throws(Status) -> Bool { throw status }
        func node(at path: TreePath) throws(Status) -> Node { throw status }
        func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] { throw status }
    }

    @Test func unreadableDataIsNotADenial() throws {
        let rules = try databaseRules(
            #"{"rules":{"a":{".read":"data.exists()",".write":"!data.exists()"},"b":{".write":true,".validate":"true"}}}"#
        )
        #expect(throws: Status(.unavailable, "broken")) {
            try rules.mayRead("a", query: nil, auth: nil, data: Broken(), now: 0)
        }
        for path: TreePath in ["a", "b", "b/c"] {
            #expect(throws: Status(.unavailable, "broken")) {
                try rules.mayWrite(
                    [TreeChange(path: path, node: 1)], auth: nil, before: Broken(), after: Broken(), now: 0)
            }
        }
    }
}

extension Node: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral,
    ExpressibleByUnicodeScalarLiteral, ExpressibleByExtendedGraphemeClusterLiteral
{
    package init(integerLiteral value: Int64) { self.init(.integer(value)) }
    package init(stringLiteral value: String) { self.init(.string(value)) }
}
