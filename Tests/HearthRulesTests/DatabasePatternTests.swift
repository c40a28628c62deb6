import HearthTree
import Testing

@testable import HearthRules

/// Regular expressions of the Realtime Database.
@Suite struct DatabasePatternTests {
    static let matches: [(String, String, String, Bool)] = [
        ("a", "", "xax", true), ("^a", "", "xa", false), ("^a$", "", "a", true), ("a$", "", "ab", false),
        ("^a|b$", "", "ac", true), ("^a|b$", "", "cb", true), ("^a|b$", "", "cac", false), ("A", "i", "a", true),
        ("A", "", "a", false), ("Ä", "i", "ä", true), ("a.c", "", "a\nc", true), ("a.c", "", "a😀c", true),
        ("^...$", "", "äöü", true), (#"^\d+$"#, "", "123", true), (#"^\d+$"#, "", "12a", false),
        (#"^\w+\s\W\S\D$"#, "", "a_1 !ab", true), (#"a\.b"#, "", "axb", false), (#"a\.b"#, "", "a.b", true),
        (#"a\/b"#, "", "a/b", true), ("^[akz]+$", "", "azk", true), ("^[a-z0-9]+$", "", "a1b2", true),
        ("^[^0-3]$", "", "4", true), ("^[^0-3]$", "", "2", false), ("[/]", "", "/", true),
        (#"^[\w.-]+$"#, "", "a.b-c", true),
        (#"^[\w-.]+$"#, "", "a.b-c", true), (#"^[\d-x]+$"#, "", "1-x", true), (#"^[\\-x]$"#, "", "]", true),
        ("^[-a]+$", "", "a-", true), ("^[a-]+$", "", "a-", true), ("^[^-]$", "", "-", false), ("^[a^]$", "", "^", true),
        ("^[[]$", "", "[", true), (#"^[\]]$"#, "", "]", true), ("^[[:a]+$", "", "a:[", true),
        ("^[.*]$", "", "x", false),
        ("^a{2}$", "", "aa", true), ("^a{2}$", "", "aaa", false), ("^a{2,}$", "", "aaaa", true),
        ("^a{2,3}$", "", "aaaa", false), ("^(ab)+$", "", "abab", true), ("^(a|b|cd)*$", "", "acdb", true),
        ("^(a(b|c)d)?e$", "", "acde", true), ("^a]b}c$", "", "a]b}c", true), (#"\-\@\_\ \,"#, "", "-@_ ,", true),
        (#"\e\n"#, "", "en", true), ("^$", "", "", true), ("^$", "", "a", false), ("a*", "", "", true),
        (#"^[A-Z0-9._%+-]+@[A-Z0-9.-]+\.[A-Z]{2,4}$"#, "i", "someone@example.org", true),
        (#"^[A-Z0-9._%+-]+@[A-Z0-9.-]+\.[A-Z]{2,4}$"#, "i", "someone@example", false),
        (#"^(19|20)[0-9][0-9][-\/. ](0[1-9]|1[012])[-\/. ](0[1-9]|[12][0-9]|3[01])$"#, "", "2024-02-29", true),
        (#"^https?:\/\/.+\.(png|jpe?g)$"#, "", "http://x.org/a.jpg", true), ("&lt;#~'\"", "", "&lt;#~'\"", true),
        ("a b\u{7F}", "", "a b\u{7F}", true),
    ]

    @Test(arguments: matches)
    func match(_ pattern: String, _ flags: String, _ string: String, _ isFound: Bool) throws {
        #expect(try TreePattern(pattern, flags: flags, at: 0).isFound(in: string) == isFound, "/\(pattern)/\(flags)")
    }

    static let refusals: [(String, Int, String)] = [
        ("a^b", 1, "'^' is only supported at the beginning"),
        ("(^foo$|bar)", 1, "'^' is only supported at the beginning"),
        ("a$b", 1, "'$' is only supported at the end"), ("^(foo|)$", 6, "empty alternative"),
        ("a||b", 2, "empty alternative"),
        ("|a", 0, "empty alternative"), ("a|", 2, "empty alternative"), ("()", 1, "empty alternative"),
        ("(?:a)", 1, "groups with '?' are not supported"), ("(?=a)", 1, "groups with '?' are not supported"),
        (#"\ba"#, 0, "word boundaries are not supported"), (#"a\B"#, 1, "word boundaries are not supported"),
        (#"(a)\1"#, 3, "back references are not supported"), ("a*?", 2, "lazy quantifiers are not supported"),
        ("a{2}?", 4, "lazy quantifiers are not supported"), ("a**", 2, "nothing to repeat"),
        ("*a", 0, "nothing to repeat"),
        ("^*", 1, "nothing to repeat"), ("a|+", 2, "nothing to repeat"), ("a+{2}", 2, "nothing to repeat"),
        ("a{", 1, "'{' begins a number of repetitions, as in {2,5}"),
        ("a{,2}", 1, "'{' begins a number of repetitions, as in {2,5}"),
        ("a{3,2}", 1, "'{' begins a number of repetitions, as in {2,5}"),
        ("a{2", 1, "'{' begins a number of repetitions, as in {2,5}"),
        ("a{99999999999999999999}", 1, "'{' begins a number of repetitions, as in {2,5}"),
        ("a)", 1, "unmatched ')'"), ("(a", 0, "unterminated group"), ("[]", 0, "empty class"),
        ("[^]", 0, "empty class"),
        ("[a", 0, "unterminated class"), ("a\\", 1, "a backslash at the end"), ("", 0, "it is empty"),
        ("[z-a]", 0, "it is too large, or has a range out of order"),
        ("a{1001}", 0, "it is too large, or has a range out of order"),
        ("((a{100}){100}){100}", 0, "it is too large, or has a range out of order"),
        (String(repeating: "(", count: 60), 51, "groups are nested too deeply"),
    ]

    @Test(arguments: refusals)
    func refusal(_ pattern: String, _ offset: Int, _ what: String) {
        do throws(TreeSyntaxError) {
            _ = try TreePattern(pattern, flags: "", at: 100)
            Issue.record("/\(pattern)/ is taken")
        } catch {
            #expect(error.message == "invalid regular expression: " + what, "/\(pattern)/")
            #expect(error.offset == 100 + offset, "/\(pattern)/")
        }
    }
}
