import HearthModel
import HearthHost
import Testing

@testable import HearthToolSupport
@testable import hearth

@Suite struct ManualPageTests {
    private let page = ManualCommand.page(date: "2026-01-31")

    private func section(of command: String) throws -> String {
        let start = try #require(page.firstRange(of: "\n.SS \(command)\n"), "\(command)")
        let rest = page[start.upperBound...]
        return String(rest[..<(rest.firstRange(of: "\n.S")?.lowerBound ?? rest.endIndex)])
    }

    @Test func hasEachCommandWithItsOptions() throws {
        for command in Tool.commands {
            let section = try section(of: command.name)
            for option in command.options {
                let name = "--\(option.name)".split(separator: "-", omittingEmptySubsequences: false).joined(
                    separator: "\\-")
                let value = option.value.map { " \\fI" + $0.split(separator: "-").joined(separator: "\\-") } ?? ""
                #expect(
                    section.contains("\(name)\\fR\(value)"), "\(command.name) --\(option.name)")
            }
        }
    }

    @Test func saysTheVersionAndTheDate() {
        #expect(page.contains(".TH HEARTH 1 2026-01-31 \"hearth \(HearthVersion.string)\""))
    }

    @Test func noLineIsARequestByChance() {
        let requests = [".\\\"", ".TH", ".SH", ".SS", ".TP", ".PP", ".RS", ".RE", ".EX", ".EE"]
        for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
            #expect(requests.contains { line.hasPrefix($0) }, "\(line)")
        }
    }

    @Test func prose() {
        var page = ManualPage(program: "p", version: "1", date: "2026-01-31", summary: "s")
        let start = page.string
        page.prose([
            "Usage: p FILE\n       p -", "list  all that\n      is there\nshow  one",
            "Say `p list`.\n    .p 'x' \\\nThen\nmore…",
        ])
        let expected = """
            .PP
            .RS 4
            .EX
            p FILE
            p \\-
            .EE
            .RE
            .TP
            \\fBlist\\fR
            all that is there
            .TP
            \\fBshow\\fR
            one
            .PP
            Say \\fBp list\\fR.
            .RS 4
            .EX
            \\&.p \\(aqx\\(aq \\e
            .EE
            .RE
            Then more\\[u2026]

            """
        #expect(String(page.string.dropFirst(start.count)) == expected)
    }

    @Test func theVersionOfABuildHasNoCommit() {
        #expect(HearthVersion.commit == nil)
        #expect(HearthVersion.withCommit == HearthVersion.string)
    }
}
