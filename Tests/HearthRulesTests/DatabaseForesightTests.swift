import HearthModel
import HearthTree
import Testing

@testable import HearthRules

/// Decisions that do not depend on the data, before there is any.
@Suite struct DatabaseForesightTests {
    private let ann = databaseUser("ann", [("admin", true)])

    private func mayGrant(
        _ rules: String, _ scope: TreeWriteScope, as auth: TreeAuth? = nil
    ) throws -> Bool {
        try databaseRules(#"{"rules":"# + rules + "}").mayGrantWrite(scope, auth: auth)
    }

    @Test(arguments: [
        "false", "auth != null", "auth.uid == 'ann'", "auth.token.admin == true", "auth != null && data.exists()",
        "data.exists() && auth != null", "auth != null && newData.exists() || auth.uid == 'ann'",
        "root.child('admins').child(auth.uid).exists()", "root.child('admins/' + auth.uid).exists()",
        "!(auth == null)", "auth == null ? false : newData.exists()", "auth.uid.length > 3 && now > 5",
        "auth.token.email.matches(/x/) || false", "auth.uid.contains('a')", "root.hasChild(auth.uid)",
        "newData.hasChildren(['a', auth.uid])", "auth == null ? auth.uid == 'ann' : true",
    ])
    func noWriteIsRejectedThatDataCouldAllow(expression: String) throws {
        let rules = #"{"a":{".write":\#(quoted(expression))}}"#
        #expect(try !mayGrant(rules, .location("a")))
        #expect(try !mayGrant(rules, .location("a/b/c")))
        #expect(try !mayGrant(rules, .below("a")))
        #expect(try !mayGrant(rules, .child(of: "a")))
    }

    @Test(arguments: [
        "true", "data.exists()", "newData.isNumber()", "!newData.exists()", "now > 5", "auth == null",
        "auth != null || data.exists()", "auth.uid == newData.child('owner').val()",
        "newData.exists() ? auth == null : false", "(data.exists() ? 'a' : 'b') == 'a'",
        "!(data.exists() && auth != null)", "root.child('open').val() == true && auth == null",
    ])
    func dataDependentExpressionsMayHold(expression: String) throws {
        let rules = #"{"a":{".write":\#(quoted(expression))}}"#
        #expect(try mayGrant(rules, .location("a")))
        #expect(try mayGrant(rules, .location("a/b")))
        #expect(try mayGrant(rules, .below("a")))
        #expect(try mayGrant(rules, .below(.root)))
        #expect(try mayGrant(rules, .child(of: "a")))
        #expect(try mayGrant(rules, .child(of: .root)))
        #expect(try mayGrant(rules, .location("a/.priority")))
        // Rules grant at their location and below it.
        #expect(try !mayGrant(rules, .location(.root)))
        #expect(try !mayGrant(rules, .location("b")))
        #expect(try !mayGrant(rules, .below("b")))
    }

    @Test func wildcardsAreKnownOnThePathAndOpenBelow() throws {
        let rules = #"{"users":{"$uid":{".write":"$uid == auth.uid"}}}"#
        #expect(try mayGrant(rules, .location("users/ann/x"), as: ann))
        #expect(try !mayGrant(rules, .location("users/bob/x"), as: ann))
        #expect(try !mayGrant(rules, .location("users"), as: ann))
        #expect(try mayGrant(rules, .below("users"), as: ann))
        #expect(try mayGrant(rules, .child(of: "users"), as: ann))
        #expect(try !mayGrant(rules, .below("users/bob"), as: ann))
        // A new key may have any value.
        #expect(try !mayGrant(rules, .child(of: .root), as: ann))
        #expect(try mayGrant(rules, .below(.root), as: ann))
    }

    @Test func undecidedExpressionsMayHold() throws {
        let long = (0..<60).map { "auth.uid == 'u\($0)'" }.joined(separator: "||")
        let members = (0..<100).map { #""k\#($0)":{".write":\#(quoted(long))}"# }.joined(separator: ",")
        #expect(try mayGrant("{\(members)}", .below(.root), as: ann))
    }
}
