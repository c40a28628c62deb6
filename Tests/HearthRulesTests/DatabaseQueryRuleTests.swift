import HearthTree
import Testing

@testable import HearthRules

/// `query` in `.read`, and `.indexOn`.
@Suite struct DatabaseQueryRuleTests {
    /// Queries in REST form, an expression, and whether it holds.
    static let cases: [([(String, String)], String, Bool)] = [
        (
            [("orderBy", #""owner""#), ("equalTo", #""alice""#)],
            "query.orderByChild == 'owner' && query.equalTo == auth.uid", true
        ),
        (
            [("orderBy", #""owner""#), ("equalTo", #""bob""#)],
            "query.orderByChild == 'owner' && query.equalTo == auth.uid", false
        ),
        ([("orderBy", #""owner""#), ("startAt", #""alice""#)], "query.equalTo == auth.uid", false),
        (
            [("orderBy", #""owner""#), ("startAt", #""alice""#), ("endAt", #""alice""#)], "query.equalTo == auth.uid",
            true
        ),
        ([("orderBy", #""a/b""#)], "query.orderByChild == 'a/b'", true),
        ([("orderBy", #""$key""#)], "query.orderByKey && !query.orderByValue && !query.orderByPriority", true),
        ([("orderBy", #""$key""#)], "query.orderByChild == null", true),
        (
            [("orderBy", #""$value""#), ("startAt", "3")],
            "query.orderByValue && query.startAt == 3 && query.endAt == null", true
        ),
        ([("orderBy", #""$priority""#), ("limitToFirst", "3")], "query.orderByPriority", true),
        ([("orderBy", #""$key""#), ("startAt", #""k""#)], "query.startAt == 'k'", true),
        ([("orderBy", #""$key""#), ("equalTo", #""k""#)], "query.equalTo == 'k' && query.startAt == 'k'", true),
        ([("orderBy", #""n""#), ("equalTo", "true")], "query.equalTo == true", true),
        ([("orderBy", #""n""#), ("equalTo", "null")], "query.equalTo == null", true),
        ([("orderBy", #""n""#), ("endAt", "2.5")], "query.endAt <= 3", true),
        (
            [("orderBy", #""$key""#), ("limitToFirst", "10")], "query.limitToFirst <= 10 && query.limitToLast == null",
            true
        ),
        ([("orderBy", #""$key""#), ("limitToFirst", "11")], "query.limitToFirst <= 10", false),
        ([("orderBy", #""$key""#), ("limitToLast", "10")], "query.limitToLast == 10", true),
        ([("orderBy", #""$key""#), ("limitToLast", "10")], "query.limitToFirst <= 10", false),
        ([("orderBy", #""$key""#)], "query.limitToFirst <= 10", false),
    ]

    @Test(arguments: cases)
    func query(_ parameters: [(String, String)], _ expression: String, _ isAllowed: Bool) throws {
        let rules = try databaseRules(#"{"rules":{"list":{".read":"# + quoted(expression) + "}}}")
        let query = try TreeQuery(rest: parameters.map { (name: $0.0, value: $0.1) })
        #expect(try rules.mayRead("list", in: .empty, auth: databaseUser("alice"), query: query) == isAllowed)
    }

    @Test func withoutAQueryItsMembersAreEmpty() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{"list":{".read":"query.orderByChild == null && query.limitToFirst == null && query.limitToLast == null
                && query.startAt == null && query.endAt == null && query.equalTo == null && query.orderByKey == false
                && query.orderByValue == false && query.orderByPriority == false",
              "$x":{".read":"query.orderByKey == true"}}}}
            """#)
        #expect(try rules.mayRead("list", in: .empty))
        #expect(try !rules.mayRead("list", in: .empty, query: TreeQuery(rest: [("orderBy", #""$key""#)])))
        #expect(try rules.mayRead("list/a", in: .empty, query: TreeQuery(rest: [("orderBy", #""$key""#)])))
    }

    @Test func rulesOfChildrenAreNotEvaluatedForAQuery() throws {
        let rules = try databaseRules(
            #"{"rules":{"list":{"$x":{".read":true}},"open":{".read":true,"$x":{".read":false}}}}"#)
        let query = try TreeQuery(rest: [("orderBy", #""$key""#)])
        #expect(try !rules.mayRead("list", in: .empty, query: query))
        #expect(try rules.mayRead("open", in: .empty, query: query))
    }

    @Test func indexes() throws {
        let rules = try databaseRules(
            #"""
            {"rules":{".indexOn":".value","users":{".indexOn":["name","a/b"],"$uid":{"posts":{".indexOn":["t","t"]}},
              "admin":{}}}}
            """#)
        #expect(rules.hasIndex(.value, at: .root))
        #expect(rules.hasIndex(.child("name"), at: "users"))
        #expect(rules.hasIndex(.child("a/b"), at: "users"))
        #expect(!rules.hasIndex(.child("a"), at: "users"))
        #expect(!rules.hasIndex(.value, at: "users"))
        #expect(rules.hasIndex(.child("t"), at: "users/alice/posts"))
        #expect(!rules.hasIndex(.child("t"), at: "users/admin/posts"))
        #expect(!rules.hasIndex(.child("t"), at: "nothing/at/all"))
        #expect(rules.hasIndex(.key, at: "nothing/at/all") && rules.hasIndex(.priority, at: .root))
        let definitions = rules.indexDefinitions
        #expect(definitions.map(\.pattern) == [[], ["users"], ["users", "$uid", "posts"]])
        #expect(definitions.map(\.indexes) == [[.value], [.child("name"), .child("a/b")], [.child("t")]])
    }
}
