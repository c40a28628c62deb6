import Testing

@testable import HearthRules

struct LeakTests {
    private static let source = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents {
            function inner(x) { return x == 1; }
            function outer(x) { let y = x; return inner(y) && inner(x); }
            match /c/{d} { allow read: if outer(request.resource.data.n); }
          }
        }
        """

    /// Rules are compiled again whenever their file changes: no memory of a compilation may leak.
    @Test func aCompilationLeavesNothingBehind() {
        var (file, issues) = Parser.parse(Array(Self.source.utf8))
        #expect(!issues.hasErrors)
        weak var entry: FunctionEntry?
        weak var scope: Scope?
        do {
            var compiler = Compiler(file, lines: LineIndex(Array(Self.source.utf8)), issues: issues)
            _ = compiler.compile()
            #expect(compiler.functions.count == 2)
            entry = compiler.functions.first
            scope = compiler.scope
        }
        file = SourceFile()
        issues = IssueList()
        #expect(entry == nil)
        #expect(scope == nil)
    }
}
