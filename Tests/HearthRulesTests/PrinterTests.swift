import Testing

@testable import HearthRules

@Suite struct PrinterTests {
    private func expectRoundTrip(_ source: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let (file, issues) = Parser.parse(Array(source.utf8))
        #expect(!issues.hasErrors, "\(source)", sourceLocation: sourceLocation)
        let printed = Printer.print(file)
        let (again, found) = Parser.parse(Array(printed.utf8))
        #expect(!found.hasErrors, "\(printed)", sourceLocation: sourceLocation)
        #expect(again == file, "\(printed)", sourceLocation: sourceLocation)
    }

    @Test(arguments: ["operators.txt", "access.txt", "methods.txt", "choices.txt"])
    func printedExpressionsHaveTheSameMeaning(file: String) throws {
        for test in try ExpressionCaseTests.cases(file) {
            expectRoundTrip(service("match /c/{d} { allow get: if \(test.expression); }"))
        }
    }

    @Test func declarationsArePrinted() throws {
        for file in ["matching.txt", "queries.txt"] {
            for block in try VerdictCaseTests.blocks(file) {
                expectRoundTrip(service(block.rules.joined(separator: "\n"), version: block.version))
            }
        }
        expectRoundTrip("service firebase.storage { match /b/{x=**} { allow read; } } function f(a, b) { return a; }")
    }

    @Test func treesThatDifferAreNotEqual() {
        func tree(_ expression: String) -> SourceFile {
            Parser.parse(Array(service("match /c/{d} { allow get: if \(expression); }").utf8)).file
        }
        #expect(tree("a == b") != tree("a != b"))
        #expect(tree("a . b") == tree("a.b"))
        #expect(tree("'a'") == tree("\"\\x61\""))
        #expect(tree("/a/b") != tree("/a/c"))
        #expect(tree("/a/{b}") != tree("/a/{c}"))
        #expect(tree("f(1)") != tree("f(2)"))
        #expect(tree("1") != tree("1.0"))
    }

    @Test func numbersAreWrittenWithoutExponents() {
        #expect(Decimal.expanded(1e21) == "1000000000000000000000.0")
        #expect(Decimal.expanded(1.5e-7) == "0.00000015")
        #expect(Decimal.expanded(0) == "0.0")
        #expect(Decimal.expanded(123.25) == "123.25")
        #expect(Decimal.java(1.0E10) == "1.0E10")
        #expect(Decimal.java(.leastNonzeroMagnitude) == "5.0E-324")
        #expect(Decimal.java(.greatestFiniteMagnitude) == "1.7976931348623157E308")
    }
}
