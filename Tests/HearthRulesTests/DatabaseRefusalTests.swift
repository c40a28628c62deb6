import HearthTree
import Testing

@testable import HearthRules

/// The errors of a deployment, in the service's wording.
@Suite struct DatabaseRefusalTests {
    /// Expressions in a `.write` below `$id`; the column is relative to the expression.
    static let expressions: [(String, Int, String)] = [
        ("foo == 1", 1, "Unknown variable 'foo'."),
        ("$other == 'x'", 1, "Unknown variable '$other'."),
        ("true && $sibling == 'x'", 9, "Unknown variable '$sibling'."),
        ("query.orderByKey", 1, "Unknown variable 'query'."),
        ("data.foo()", 1, "No such method/property 'foo'."),
        ("data.length > 1", 1, "No such method/property 'length'."),
        ("newData.val().foo == 1", 1, "No such method/property 'foo'."),
        ("newData.val()['foo'] == 1", 1, "No such method/property 'foo'."),
        ("'a'.foo()", 1, "No such method/property 'foo'."),
        ("now.foo == 1", 1, "No such method/property 'foo'."),
        ("true.foo", 1, "No such method/property 'foo'."),
        ("data.exists.foo", 1, "No such method/property 'foo'."),
        ("'a'.length() == 1", 1, "Type error: Function call on target that is not a function."),
        ("newData.val().length() == 1", 1, "Type error: Function call on target that is not a function."),
        ("auth.exists()", 1, "Type error: Function call on target that is not a function."),
        ("auth()", 1, "Type error: Function call on target that is not a function."),
        ("data()", 1, "Type error: Function call on target that is not a function."),
        ("(1)(2)", 2, "Type error: Function call on target that is not a function."),
        ("data.exists()()", 1, "Type error: Function call on target that is not a function."),
        ("1", 1, "Expression must evaluate to a boolean."),
        ("'a'", 1, "Expression must evaluate to a boolean."),
        ("null", 1, "Expression must evaluate to a boolean."),
        ("data", 1, "Expression must evaluate to a boolean."),
        ("data.val()", 1, "Expression must evaluate to a boolean."),
        ("data.exists", 1, "Expression must evaluate to a boolean."),
        ("auth.admin", 1, "Expression must evaluate to a boolean."),
        ("/a/", 1, "Expression must evaluate to a boolean."),
        ("['a']", 1, "Expression must evaluate to a boolean."),
        ("true ? 1 : false", 1, "Expression must evaluate to a boolean."),
        ("true ? data : newData", 1, "Expression must evaluate to a boolean."),
        ("data.child()", 1, "child() expects 1 argument."),
        ("data.child('a', 'b').exists()", 1, "child() expects 1 argument."),
        ("data.parent('a').exists()", 1, "parent() expects 0 arguments."),
        ("'a'.replace('b') == 'a'", 1, "replace() expects 2 arguments."),
        ("'a'.beginsWith()", 1, "beginsWith() expects 1 argument."),
        ("'a'.beginsWith(1)", 16, "beginsWith() expects a string argument."),
        ("'a'.contains(data)", 14, "contains() expects a string argument."),
        ("'a'.contains(/a/)", 14, "contains() expects a string argument."),
        ("data.child(1).exists()", 12, "child() expects a string argument."),
        ("data.hasChild(true)", 15, "hasChild() expects a string argument."),
        ("'a'.replace('b', 1) == 'a'", 18, "Argument 2 of replace() must be a string."),
        ("'a'.replace(true, 'b') == 'a'", 13, "Argument 1 of replace() must be a string."),
        ("'a'.matches('a')", 13, "matches() expects a regular expression literal argument."),
        ("'a'.matches(data.val())", 13, "matches() expects a regular expression literal argument."),
        ("'a'.matches()", 1, "matches() expects 1 argument."),
        ("'a'.matches(/a/g)", 14, "regular expressions do not support flags other than i"),
        ("'a'.matches(/a/ii)", 14, "regular expressions do not support flags other than i"),
        ("'a'.matches(/a)", 13, "unterminated regular expression literal"),
        ("'a'.matches(/[/)", 13, "unterminated regular expression literal"),
        (
            "data.hasChildren('a', 'b')", 1,
            "hasChildren() expects only a single argument (containing an array of child names)."
        ),
        ("data.hasChildren('a')", 18, "hasChildren() expects an array of child names."),
        ("data.hasChildren(data.val())", 18, "hasChildren() expects an array of child names."),
        ("data.hasChildren(['a', 1])", 24, "hasChildren() expects an array of strings."),
        (
            "data == newData", 1,
            "Invalid == expression: left operand is not a number, boolean, string, null."
        ),
        (
            "data === newData", 1,
            "Invalid == expression: left operand is not a number, boolean, string, null."
        ),
        (
            "1 == newData", 6,
            "Invalid == expression: right operand is not a number, boolean, string, or null."
        ),
        (
            "data !== newData", 1,
            "Invalid != expression: left operand is not a number, boolean, string, or null."
        ),
        (
            "'a' != data", 8,
            "Invalid != expression: right operand is not a number, boolean, string, or null."
        ),
        ("data.exists == true", 1, "Invalid == expression: left operand is not a number, boolean, string, null."),
        ("['a'] == null", 1, "Invalid == expression: left operand is not a number, boolean, string, null."),
        ("data + 1 == 2", 1, "Invalid + expression: left operand is not a number or string."),
        ("1 + data == 2", 5, "Invalid + expression: right operand is not a number or string."),
        ("data - 1 == 2", 1, "Invalid - expression: left operand is not a number."),
        ("'a' * 2 == 2", 1, "Invalid * expression: left operand is not a number."),
        ("1 / 'a' == 2", 5, "Invalid / expression: right operand is not a number."),
        ("1 % true == 2", 5, "Invalid % expression: right operand is not a number."),
        ("data < 1", 1, "Invalid < expression: left operand must be a number or string."),
        ("1 >= data", 6, "Invalid >= expression: right operand must be a number or string."),
        ("!1", 2, "! only operates on booleans."),
        ("!newData.val()", 2, "! only operates on booleans."),
        ("!auth.admin", 2, "! only operates on booleans."),
        ("-'a' == 1", 2, "- only operates on numbers."),
        ("1 && true", 1, "Left operand of && must be boolean."),
        ("newData.val() && true", 1, "Left operand of && must be boolean."),
        ("true && auth.admin", 9, "Right operand of && must be boolean."),
        ("auth.admin || true", 1, "Left operand of || must be boolean."),
        ("true || true || 'a'", 17, "Right operand of || must be boolean."),
        ("data.val() ? true : false", 1, "condition of ? must be boolean."),
        ("auth = null", 6, "Rule expressions may not contain assignments."),
        ("now += 1", 5, "Rule expressions may not contain assignments."),
        ("now /= 1", 6, "Rule expressions may not contain assignments."),
        ("data[$id]", 6, "No such method/property: only auth may be indexed by an expression."),
        ("true true", 6, "Parse error: expected an operator or the end, found 'true'."),
        ("(true", 6, "Parse error: expected ')', found the end."),
        ("", 1, "Parse error: expected an operand, found the end."),
        ("true &", 6, "Parse error: unexpected '&'."),
        ("true && ", 9, "Parse error: expected an operand, found the end."),
        ("2 ** 3 == 8", 4, "Parse error: expected an operand, found '*'."),
        ("typeof data == 'a'", 8, "Parse error: expected an operator or the end, found 'data'."),
        ("{} == null", 1, "Parse error: unexpected '{'."),
        ("`a` == 'a'", 1, "Parse error: unexpected '`'."),
        ("'a == 1", 1, "unterminated string literal"),
        ("12abc == 1", 1, "Parse error: illegal number."),
        ("1e == 1", 1, "Parse error: illegal number."),
        ("'\\u12' == 'a'", 2, "illegal escape"),
    ]

    @Test(arguments: expressions)
    func expression(_ string: String, _ column: Int, _ message: String) {
        // Escapes in JSON would shift the columns after them.
        let prefix = #"{"rules":{"a":{"$sibling":{}},"b":{"$id":{".write":""#
        let json = prefix + quoted(string).dropFirst() + "}}}}"
        let escapes = string.utf8.prefix(max(column - 1, 0)).count { $0 == UInt8(ascii: "\\") }
        #expect(databaseRefusal(json) == "1:\(prefix.utf8.count + column + escapes): \(message)")
    }

    private static let badKey = ##"String can't contain ".", "#", "$", "/", "[", or "]""##

    static let documents: [(String, String)] = [
        (#"{"rules":{"$x":{},"$y":{}}}"#, "1:19: Cannot have multiple default rules ('$x' and '$y')."),
        (#"{"rules":{"$x":{},"$x":{}}}"#, "1:19: Cannot have multiple default rules ('$x' and '$x')."),
        (#"{"rules":{".foo":"true"}}"#, "1:18: Expected '{'."),
        (#"{"rules":{"a":true}}"#, "1:15: Expected '{'."),
        (#"{"rules":{"a":[]}}"#, "1:15: Expected '{'."),
        (#"{"rules":true}"#, "1:10: Expected '{'."),
        (#"[]"#, "1:1: Expected '{'."),
        (#"{"rules":{".foo":{}}}"#, "1:11: " + badKey),
        (#"{"rules":{"a/b":{}}}"#, "1:11: " + badKey),
        (#"{"rules":{"a$b":{}}}"#, "1:11: " + badKey),
        (#"{"rules":{"$a.b":{}}}"#, "1:11: " + badKey),
        (#"{"rules":{"":{}}}"#, "1:11: " + badKey),
        (#"{"rules":{"$":{}}}"#, "1:11: " + badKey),
        (
            #"{"rules":{".read":1}}"#,
            "1:19: Invalid rule expression.  Expected 'true', 'false', or an expression string."
        ),
        (
            #"{"rules":{".write":{}}}"#,
            "1:20: Invalid rule expression.  Expected 'true', 'false', or an expression string."
        ),
        (
            #"{"rules":{".validate":null}}"#,
            "1:23: Invalid rule expression.  Expected 'true', 'false', or an expression string."
        ),
        (
            #"{"rules":{".indexOn":true}}"#,
            "1:22: Invalid indexOn expression. Must be either a string or an array of strings"
        ),
        (
            #"{"rules":{".indexOn":["a",1]}}"#,
            "1:22: Invalid indexOn expression. Must be either a string or an array of strings"
        ),
        (#"{"rules":{".indexOn":"a.b"}}"#, "1:22: " + badKey),
        (#"{"rules":{".read":"newData.exists()"}}"#, "1:20: newData is invalid in .read expressions."),
        (#"{"rules":{".read":"query.foo"}}"#, "1:20: No such method/property 'foo'."),
        (
            #"{"rules":{".read":"query == null"}}"#,
            "1:20: Invalid == expression: left operand is not a number, boolean, string, null."
        ),
        (#"{"rules":{".validate":"query.orderByKey"}}"#, "1:24: Unknown variable 'query'."),
        (#"{"rules":{"$a":{"b":{"$a":{}}}}}"#, "1:22: The name '$a' is already that of a default rule above."),
        (#"{"rules":{"a":{},"a":{}}}"#, "1:18: Duplicate key 'a'."),
        (#"{"rules":{},"more":{}}"#, "1:13: Expected nothing beside the key \"rules\"."),
        (#"{"more":{}}"#, "1:2: Expected the key \"rules\"."),
        (#"{}"#, "1:1: Expected the key \"rules\"."),
        ("", "1:1: Parse error: expected a value, but the rules end here."),
        ("rules", "1:1: Parse error: expected a value, found 'r'."),
        (#"{"rules":{}"#, "1:12: Parse error: expected ',' or '}', but the rules end here."),
        (#"{"rules":{}} x"#, "1:14: Parse error: expected the end, found 'x'."),
        (#"{"rules" {}}"#, "1:10: Parse error: expected ':', found '{'."),
        (#"{rules:{}}"#, "1:2: Parse error: expected a key in double quotes or '}', found 'r'."),
        (#"{"rules":{,}}"#, "1:11: Parse error: expected a key in double quotes or '}', found ','."),
        (#"{"rules":{"a":{}"b":{}}}"#, "1:17: Parse error: expected ',' or '}', found '\"'."),
        ("{\"rules\":{\n  /* no end", "2:3: Parse error: unterminated comment."),
        ("{\"rules\":{\n  \"a", "2:3: Parse error: unterminated string."),
        (#"{"rules":{".read":"a\d"}}"#, #"1:21: Parse error: illegal escape; a backslash is written \\."#),
        (#"{"rules":{".read":"\ud800"}}"#, #"1:20: Parse error: illegal \u escape."#),
        (#"{"rules":{".read":"\u12"}}"#, #"1:20: Parse error: illegal \u escape."#),
        ("{\"rules\":{\".read\":\"\u{1}\"}}", "1:20: Parse error: control character in a string."),
        (#"{"rules":{".read":+1}}"#, "1:19: Parse error: expected a value, found '+'."),
        (#"{"rules":{".read":é}}"#, "1:19: Parse error: expected a value, found 'é'."),
    ]

    @Test(arguments: documents)
    func document(_ string: String, _ refusal: String) {
        #expect(databaseRefusal(string) == refusal)
    }

    @Test func errorsInExpressionsHavePositionsInTheDocument() {
        // Several lines, escapes and multi-byte characters, which are one column each.
        let string = "// rules\n{ \"rules\": {\n  \".read\": \"auth != null\n    && 'ä\\u00e4\\\"' != foo\"\n} }"
        #expect(databaseRefusal(string) == "4:23: Unknown variable 'foo'.")
        #expect(databaseRefusal("{\"rules\":{\".read\":\"\\\"\\\\n\\\" == foo\"}}") == "1:31: Unknown variable 'foo'.")
    }

    @Test func invalidUTF8() {
        let bytes = Array(#"{"rules":{"a"#.utf8) + [0xFF] + Array(#"":{}}}"#.utf8)
        #expect(throws: TreeRulesError(line: 1, column: 1, message: "Parse error: the rules are not valid UTF-8.")) {
            try TreeRuleset.compile(bytes)
        }
    }

    /// Unusual, but valid.
    static let accepted: [String] = [
        "data.hasChildren([])", "data.hasChildren()", "auth.foo == 1", "auth.uid + 1 > 'x'",
        "'a'.contains(data.val())", "data.child('..').exists()", "1 == 1", "auth.token['x'] == 1",
        "data['exists']()", "data[\"val\"]() == 1", "auth['token'].admin === true", "auth.token.contains == 1",
        "auth.token.groups[0] == 'a'", "auth.token[$id] == true", "newData.val().length > 2", "'abc'['length'] == 3",
        "(true ? data : newData).exists()", "true ? true : false", "(true ? 1 : 'a') == 1", "data.child(null).exists()",
        "null == null", "!(!true)", "!!true", "- - 1 == 1", "-now < 0", "now > .5e3 && now > 1. && now > 1.e3",
        "'\\x41\\u0042\\'\\\"\\n' == \"a\"", "$id == '$id'", "auth.provider == 'password'",
        "auth != null && auth.uid == $id",
        "'a/b'.matches(/a\\/b/) && 'a'.matches(/[/]/i)", "root.child('a/' + auth.uid).exists()",
        "auth.uid.replace('.', ',') == $id", "auth.token.email.matches(/.*@example[.]com$/)", "data.getPriority() == 1",
        "data.val() === newData.val()", "auth == auth", "1 < 'a'", "\n\ttrue\r\n", "data . child ( 'a' ) . exists ( )",
    ]

    @Test(arguments: accepted)
    func odd(_ expression: String) throws {
        #expect(databaseRefusal(#"{"rules":{"$id":{".write":"# + quoted(expression) + "}}}") == nil)
    }

    @Test func documentsAreDistinguishedFromSourcesOfFirestore() {
        for string in ["{", " // x\n/* { */ {}", "\u{FEFF}{\"rules\":{}}"] {
            #expect(TreeRuleset.isDocument(Array(string.utf8)), "\(string)")
        }
        for string in ["", "// {", "/* {", "rules_version = '2';", "/* { */ service cloud.firestore {}", "[]", "/"] {
            #expect(!TreeRuleset.isDocument(Array(string.utf8)), "\(string)")
        }
    }

    @Test func documentsMayBeWrittenByHand() throws {
        let string = """
            \u{FEFF}/* before */ { // begins
              "rules": {
                ".read": "auth != null &&
                          auth.uid != 'a'", // over two lines
                ".indexOn": ["a/b", ".value",],
                "$id": { ".validate": true, },
              },
            } // the end
            """
        let rules = try databaseRules(string)
        #expect(rules.string == Array(string.utf8))
        #expect(try rules.mayRead(.root, in: .empty, auth: databaseUser("b")))
        #expect(try !rules.mayRead(.root, in: .empty, auth: databaseUser("a")))
    }
}
