import HearthTree
import Testing

@testable import HearthRules

/// The results of expressions. Their location is /items/$id, where /items/a is written.
@Suite struct DatabaseExpressionTests {
    private static let before = #"""
        {"items":{"a":{"n":5,"s":"hello","t":true,"f":false,"o":{"x":1},"p":{".value":"v",".priority":3},
        "q":{"y":1,".priority":"high"},"big":9007199254740993,"0":"zero","b@c":1},"b":1},"users":{"alice":{"admin":true}}}
        """#
    private static let after = #"{"n":6,"s":"Hello, Hello","l":["x","y"],"z":0,"e":"","u":"äé😀",".priority":1.5}"#

    enum Outcome: String, Sendable {
        case yes, no, error
    }

    private static func outcome(
        _ expression: String, auth: TreeAuth? = databaseUser("alice", Self.claims)
    ) throws -> Outcome {
        let rules = try databaseRules(#"{"rules":{"items":{"$id":{".write":"# + quoted(expression) + "}}}}")
        let before = try tree(before)
        let after = try before.setting("items/a" as TreePath, to: tree(after))
        let evaluation = TreeEvaluation(before: before, after: after, query: nil, auth: auth, now: databaseNow)
        evaluation.keys = ["items", "a"]
        evaluation.captures = ["a"]
        let write = try #require(rules.root.node(at: "items/a")?.write)
        do throws(TreeFailure) {
            guard case .bool(let value) = try evaluation.evaluate(write.expression) else {
                Issue.record("\(expression) is not boolean")
                return .error
            }
            #expect(try evaluation.holds(write.expression) == value)
            return value ? .yes : .no
        } catch {
            guard case .mismatch = error else {
                Issue.record("\(expression): \(error)")
                return .error
            }
            #expect(try !evaluation.holds(write.expression))
            return .error
        }
    }

    private static let claims: [(String, JSONValue)] = [
        ("email", "a@x.org"), ("admin", true), ("level", 3), ("none", nil), ("groups", ["g", "h"]),
        ("firebase", ["sign_in_provider": "custom"]), ("name.dot", "d"), ("length", 7),
    ]

    static let cases: [(String, Outcome)] = [
        // Precedence and association.
        ("1 + 2 * 3 == 7", .yes), ("(1 + 2) * 3 == 9", .yes), ("10 - 3 - 2 == 5", .yes), ("100 / 10 / 2 == 5", .yes),
        ("7 % 4 * 2 == 6", .yes), ("1 + 1 < 1 + 2 == true", .yes), ("true || false && false", .yes),
        ("(true || false) && false", .no), ("!true == false", .yes), ("-2 * -2 == 4", .yes),
        ("true ? true : false ? false : false", .yes), ("false ? true : true ? true : false", .yes),
        ("false || true ? false : true", .no), ("!(1 == 1) || 2 > 1", .yes), ("1 < 2 == 3 < 4", .yes),
        // Equality converts nothing.
        ("5 == '5'", .no), ("1 == true", .no), ("'' == false", .no), ("null == false", .no), ("null == 0", .no),
        ("null == null", .yes), ("null === null", .yes), ("'' == null", .no), ("0 != null", .yes), ("1.0 == 1", .yes),
        ("1e3 == 1000", .yes), ("0.1 + 0.2 == 0.3", .no), ("'a' === 'a'", .yes), ("'a' !== 'a'", .no),
        ("'\u{e9}' == 'e\u{301}'", .no), ("data.val() != null", .yes), ("data.val() == 1", .no),
        ("data.val() == data.val()", .no), ("auth.token != null", .yes), ("auth.token == 'x'", .no),
        ("0 == -0", .yes), ("data.child('big').val() == 9007199254740992", .yes),
        // Order.
        ("1 < 2", .yes), ("2 <= 2", .yes), ("2 > 2", .no), ("3 >= 2", .yes), ("'a' < 'b'", .yes), ("'a' < 'B'", .no),
        ("'a' <= 'a'", .yes), ("'\u{FFFD}' > '\u{1F600}'", .yes), ("'' < 'a'", .yes), ("'b' >= 'c'", .no),
        ("1 < 'a'", .error), ("data.child('t').val() < 1", .error), ("data.child('no').val() < 1", .error),
        ("data.child('no').val() >= 0", .error), ("data.val() > 1", .error), ("data.child('s').val() < 1", .error),
        // Arithmetic.
        ("1 / 0 + '' == 'NaN'", .yes), ("1 / 0 == 1 / 0", .no), ("1 / 0 != 1 / 0", .yes), ("1 / 0 < 1", .no),
        ("1 / 0 >= 1", .no), ("!(1 / 0 < 1)", .yes), ("5 % 3 == 2", .yes), ("-5 % 3 == -2", .yes),
        ("5.5 % 2 == 1.5", .yes), ("5 % 0 + '' == 'NaN'", .yes), ("-data.child('n').val() == -5", .yes),
        ("-data.child('s').val() == 1", .error), ("data.child('s').val() * 2 == 1", .error),
        ("data.child('no').val() + 1 == 1", .error), ("data.child('t').val() + 1 == 2", .error),
        ("data.child('t').val() + 'x' == 'truex'", .error), ("data.child('n').val() - 'x'.length == 4", .yes),
        ("newData.child('n').val() == data.child('n').val() + 1", .yes), ("data.val() + 'x' == 'x'", .error),
        // Concatenation writes numbers as JavaScript does.
        ("'one' + 1 == 'one1'", .yes), ("1 + 'one' == '1one'", .yes), ("1.5 + '' == '1.5'", .yes),
        ("1e21 + '' == '1e+21'", .yes), ("123456789012345680000 + '' == '123456789012345680000'", .yes),
        ("0.000001 + '' == '0.000001'", .yes), ("1e-7 + '' == '1e-7'", .yes), ("1.25e-9 + '' == '1.25e-9'", .yes),
        ("-0 + '' == '0'", .yes), ("1 + 2 + 'a' == '3a'", .yes), ("'a' + 1 + 2 == 'a12'", .yes),
        ("-1.5e300 + '' == '-1.5e+300'", .yes), ("1e308 * 10 + '' == 'Infinity'", .yes),
        // Short circuits, from left to right; errors propagate.
        ("false && data.child('no').val().length > 1", .no), ("true || data.child('no').val().length > 1", .yes),
        ("data.child('no').val().length > 1 || true", .error), ("data.child('no').val().length > 1 && false", .error),
        ("!(data.child('no').val() < 1)", .error), ("data.child('no').val() < 1 ? true : true", .error),
        ("true ? true : data.child('no').val() < 1", .yes), ("false ? data.child('no').val() < 1 : true", .yes),
        ("true && true && data.child('no').val() < 1", .error), ("false || false || true", .yes),
        // Members of null and of auth.
        ("auth.uid == 'alice'", .yes), ("auth.token.email == 'a@x.org'", .yes), ("auth.token['email'] != null", .yes),
        ("auth.token.admin == true", .yes), ("auth.token.admin === 'true'", .no), ("auth.token.nothing == null", .yes),
        ("auth.token.none == null", .yes), ("auth.token.nothing.more.still == null", .yes),
        ("auth.token.level >= 3", .yes),
        ("auth.token.groups[1] == 'h'", .yes), ("auth.token.groups[2] == null", .yes),
        ("auth.token.groups['0'] == null", .yes),
        ("auth.token.firebase.sign_in_provider == 'custom'", .yes), ("auth.token['name.dot'] == 'd'", .yes),
        ("auth.uid.more == null", .yes), ("auth.nothing.contains('x')", .error), ("auth.uid.contains('lic')", .yes),
        ("auth.uid.length == 5", .yes), ("auth.token.length == 7", .yes), ("auth.token.level.contains('3')", .error),
        ("auth.token[auth.token.email] == null", .yes), ("auth['uid'] == auth.uid", .yes),
        ("auth.token[$id] == null", .yes),
        ("auth.token[data.child('t').val()] == null", .error),
        // Variables.
        ("$id == 'a'", .yes), ("now == 1709209845123", .yes), ("root.child('users/alice/admin').val() == true", .yes),
        ("root.child('users').child(auth.uid).child('admin').val() == true", .yes),
        ("root.child('items/a/n').val() == 5", .yes),
        ("newData.parent().parent().child('items/a/n').val() == 6", .yes),
        ("newData.parent().child('b').val() == 1", .yes),
        ("root.parent().exists()", .error), ("data.parent().parent().parent().exists()", .error),
        ("newData.parent().parent().parent().exists()", .error),
        ("data.parent().child($id).child('n').val() == 5", .yes),
        ("root.exists()", .yes), ("data.parent().parent().child('users').exists()", .yes),
        // Children.
        ("data.child('o/x').val() == 1", .yes), ("data.child('/o//x/').val() == 1", .yes),
        ("data.child('').exists()", .yes),
        ("data.child('..').exists()", .no), ("data.child('../b').exists()", .no), ("data.child('.').exists()", .no),
        ("data.child('o').child('..').parent().exists()", .yes),
        ("data.child('x.y/z').parent().parent().child('n').val() == 5", .yes),
        ("data.child('a@x.org').exists()", .no), ("data.child('b@c').exists()", .yes),
        ("data.child('.priority').exists()", .no),
        ("data.child(null).exists()", .error), ("data.child(data.child('n').val()).exists()", .error),
        ("data.child(data.child('no').val()).exists()", .error), ("data.hasChild('o/x')", .yes),
        ("data.hasChild('no')", .no),
        ("data.hasChild('$')", .no), ("data.hasChild(data.child('n').val())", .error), ("data.hasChildren()", .yes),
        ("data.child('n').hasChildren()", .no), ("data.child('no').hasChildren()", .no),
        ("data.hasChildren(['n', 's'])", .yes),
        ("data.hasChildren(['n', 'no'])", .no), ("data.hasChildren([])", .yes), ("data.hasChildren(['o/x'])", .yes),
        ("data.hasChildren([data.child('s').val()])", .no), ("data.hasChildren(['no', data.child('n').val()])", .error),
        ("newData.hasChildren(['l', 'z'])", .yes), ("newData.child('l/1').val() == 'y'", .yes),
        ("newData.child('e').exists()", .yes),
        ("newData.child('s').exists() && !newData.child('t').exists()", .yes), ("data['hasChild']('n')", .yes),
        // Properties of snapshots.
        ("data.child('n').isNumber()", .yes), ("data.child('n').isString()", .no), ("data.child('s').isString()", .yes),
        ("data.child('t').isBoolean()", .yes), ("data.child('f').isBoolean()", .yes),
        ("data.child('z').isNumber()", .no),
        ("data.isNumber() || data.isString() || data.isBoolean()", .no), ("data.child('no').isBoolean()", .no),
        ("newData.child('e').isString()", .yes), ("data.child('p').val() == 'v'", .yes),
        ("data.child('f').val() == false", .yes),
        ("data.child('no').val() == null", .yes), ("data.child('n').exists()", .yes),
        ("data.child('no').exists()", .no),
        ("data.child('p').getPriority() == 3", .yes), ("data.child('q').getPriority() == 'high'", .yes),
        ("data.child('n').getPriority() == null", .yes), ("data.child('no').getPriority() == null", .yes),
        ("newData.getPriority() == 1.5", .yes), ("newData.parent().child('a').getPriority() == 1.5", .yes),
        ("data.getPriority() == null", .yes), ("data.child('a.b').getPriority() == null", .yes),
        ("data.child('a.b').val() == null", .yes), ("data.child('a.b').hasChildren()", .no),
        // Strings.
        ("'hello'.length == 5", .yes), ("newData.child('u').val().length == 4", .yes), ("''.length == 0", .yes),
        ("'hello'.contains('ell')", .yes), ("'hello'.contains('Ell')", .no), ("'hello'.contains('')", .yes),
        ("'aaab'.contains('aab')", .yes), ("'abababc'.contains('ababc')", .yes), ("'abababd'.contains('ababc')", .no),
        ("'hello'.beginsWith('he')", .yes), ("'hello'.beginsWith('lo')", .no), ("'hello'.beginsWith('')", .yes),
        ("'hello'.endsWith('lo')", .yes), ("'hello'.endsWith('he')", .no), ("'lo'.endsWith('hello')", .no),
        ("'a.b.c'.replace('.', ',') == 'a,b,c'", .yes), ("'aaa'.replace('aa', 'b') == 'ba'", .yes),
        ("'abc'.replace('b', '') == 'ac'", .yes), ("'abc'.replace('', 'x') == 'abc'", .yes),
        ("'a$1'.replace('$1', '$&') == 'a$&'", .yes),
        ("'HeLLo'.toLowerCase() == 'hello'", .yes), ("'hello\u{e4}'.toUpperCase() == 'HELLO\u{c4}'", .yes),
        ("data.child('n').val().contains('5')", .error), ("data.child('no').val().contains('5')", .error),
        ("data.child('t').val().length == 4", .no), ("data.child('n').val().toLowerCase() == '5'", .error),
        ("'hello'.contains(data.child('n').val())", .error), ("data.val().length == 3", .error),
        ("newData.child('s').val().replace('Hello', 'x') == 'x, x'", .yes), ("'a\\tb'.contains('\\x09')", .yes),
        ("'\\u00e4' == '\u{e4}'", .yes), ("'\\ud83d\\ude00' == '😀'", .yes), ("\"it's\" == 'it\\'s'", .yes),
        ("'hello'.matches(/l+/)", .yes), ("data.child('n').val().matches(/5/)", .error),
    ]

    @Test(arguments: cases)
    func expression(_ string: String, _ outcome: Outcome) throws {
        #expect(try Self.outcome(string) == outcome, "\(string)")
    }

    static let signedOut: [(String, Outcome)] = [
        ("auth == null", .yes), ("auth != null", .no), ("auth.uid == null", .yes), ("auth.uid === null", .yes),
        ("auth.token.admin == null", .yes), ("auth.uid !== 'x'", .yes), ("auth.token['a'].b == null", .yes),
        ("auth.uid.contains('x')", .error), ("auth.uid.length > 1", .error), ("data.child(auth.uid).exists()", .error),
        ("auth.uid == $id", .no), ("'users/' + auth.uid == 'x'", .error), ("auth.token.level > 1", .error),
        ("auth[$id] == null", .yes), ("auth != null && auth.uid.contains('x')", .no),
    ]

    @Test(arguments: signedOut)
    func withoutSignIn(_ string: String, _ outcome: Outcome) throws {
        #expect(try Self.outcome(string, auth: nil) == outcome, "\(string)")
    }
}
