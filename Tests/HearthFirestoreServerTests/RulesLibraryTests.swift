import HearthModel
import HearthRules
import HearthTestSupport
import Testing

@testable import HearthFirestoreServer
@testable import HearthHost

/// What is in force, after which changes, and after which ends of the process.
@Suite struct RulesLibraryTests {
    private func source(_ condition: String) -> String { RulesetHarness.source(condition) }

    @Test func aReleaseIsInForceForItsDatabaseAlone() throws {
        let rules = try RulesetHarness()
        #expect(rules.inForce() == nil && rules.registry.isEmpty)
        try rules.release(try rules.create("true"))
        #expect(rules.inForce() == source("true") && !rules.registry.isEmpty)
        #expect(rules.inForce("other") == nil && rules.inForce(project: "q") == nil)
        try rules.release(try rules.create("1 == 1"), "cloud.firestore/other")
        #expect(rules.inForce() == source("true") && rules.inForce("other") == source("1 == 1"))
        try rules.release(try rules.create("2 == 2"), "firebase.storage/bucket.example.com")
        #expect(rules.inForce() == source("true") && rules.inForce("other") == source("1 == 1"))
        _ = try rules.send("DELETE", "projects/p/releases/cloud.firestore")
        #expect(rules.inForce() == nil && rules.inForce("other") == source("1 == 1"))
    }

    @Test func releasesStayOverRestarts() throws {
        let disk = MemoryRulesDisk()
        let first = try RulesetHarness(disk)
        try first.release(try first.create("true"))
        try first.release(try first.create("1 == 1"), "cloud.firestore/other")
        let listed = try first.send("GET", "projects/p/rulesets")
        let released = try first.send("GET", "projects/p/releases")
        let second = try RulesetHarness(disk)
        #expect(second.inForce() == source("true") && second.inForce("other") == source("1 == 1"))
        #expect(try second.send("GET", "projects/p/rulesets") == listed)
        #expect(try second.send("GET", "projects/p/releases") == released)
    }

    @Test func theLastOfFileAndReleaseWins() throws {
        let disk = MemoryRulesDisk()
        var rules = try RulesetHarness(disk)
        try rules.setFile("false")
        #expect(rules.inForce() == source("false") && rules.inForce(project: "q") == source("false"))
        // The file is a release, which Firebase's tools find and do not upload again.
        let releases = try rules.list(try rules.send("GET", "projects/p/releases")["releases"])
        #expect(releases.count == 1)
        try rules.release(try rules.create("true"))
        #expect(rules.inForce() == source("true") && rules.inForce(project: "q") == source("false"))
        // A restart with the same file changes nothing.
        rules = try RulesetHarness(disk)
        try rules.setFile("false")
        #expect(rules.inForce() == source("true") && rules.inForce(project: "q") == source("false"))
        // Another file does, at a start and while the server runs.
        rules = try RulesetHarness(disk)
        try rules.setFile("1 == 2")
        #expect(rules.inForce() == source("1 == 2"))
        try rules.release(try rules.create("true"))
        try rules.setFile("1 == 3")
        #expect(rules.inForce() == source("1 == 3"))
        // Without a file the last release stays.
        rules = try RulesetHarness(disk)
        #expect(rules.inForce() == source("1 == 3"))
    }

    @Test func aDeletedReleaseLeavesNoRulesUntilTheFileChanges() throws {
        let disk = MemoryRulesDisk()
        var rules = try RulesetHarness(disk)
        try rules.setFile("true")
        _ = try rules.send("DELETE", "projects/p/releases/cloud.firestore")
        #expect(rules.inForce() == nil)
        rules = try RulesetHarness(disk)
        try rules.setFile("true")
        #expect(rules.inForce() == nil && rules.inForce(project: "q") == source("true"))
        try rules.setFile("1 == 1")
        #expect(rules.inForce() == source("1 == 1"))
    }

    @Test func aFileIsOnlyReleasedWhereThereAreRulesets() throws {
        let rules = try RulesetHarness()
        try rules.setFile("false")
        let body = RulesetHarness.body("true")
        let made = try rules.string(try rules.send("POST", "projects/q/rulesets", body)["name"])
        #expect(rules.inForce(project: "q") == source("false"))
        #expect(try rules.send("GET", "projects/q/releases")["releases"] == .array([]))
        _ = try rules.send(
            "POST", "projects/q/releases", #"{"name":"projects/q/releases/cloud.firestore","rulesetName":"\#(made)"}"#)
        #expect(rules.inForce(project: "q") == source("true"))
        try rules.setFile("1 == 2")
        #expect(rules.inForce(project: "q") == source("1 == 2") && rules.inForce() == source("1 == 2"))
        #expect(rules.library.releases(of: "q").count == 1)
    }

    @Test func whoEditsAFileAllDayFillsNothing() throws {
        let rules = try RulesetHarness()
        for number in 0..<50 { try rules.setFile("1 == \(number)") }
        #expect(rules.library.rulesets(of: "p").count == 1)
        #expect(rules.inForce() == source("1 == 49"))
    }

    @Test func aFileIsInForceAlsoWhenItCannotBeStored() throws {
        let disk = BreakingRulesDisk()
        let rules = try RulesetHarness(disk)
        try rules.release(try rules.create("true"))
        disk.breakAfter(0)
        try rules.setFile("false")
        #expect(rules.inForce() == source("false"))
        disk.breakAfter(nil)
        // It is newer than the release, which a restart finds.
        let second = try RulesetHarness(disk)
        #expect(second.inForce() == source("true"))
        try second.setFile("false")
        #expect(second.inForce() == source("false"))
    }

    @Test func rulesOfTestingLibrariesHoldUntilTheNextRelease() throws {
        let rules = try RulesetHarness()
        try rules.release(try rules.create("true"))
        rules.registry.setProject(try #require(Ruleset.compile(source("1 == 1")).ruleset), project: "p")
        #expect(rules.inForce() == source("1 == 1") && rules.inForce("other") == source("1 == 1"))
        try rules.release(try rules.create("2 == 2"))
        #expect(rules.inForce() == source("2 == 2") && rules.inForce("other") == source("1 == 1"))
        rules.registry.setProject(try #require(Ruleset.compile(source("3 == 3")).ruleset), project: "p")
        #expect(rules.inForce() == source("3 == 3"))
    }

    @Test func rulesThatCannotBeReadAllowNothing() throws {
        let disk = MemoryRulesDisk()
        let rules = try RulesetHarness(disk)
        try rules.release(try rules.create("true"))
        let name = try #require(rules.library.rulesets(of: "p").first?.fileName)
        for damage in [Array("{".utf8), Array(#"{"source":{"files":[{"name":"a","content":"no rules"}]}}"#.utf8)] {
            try disk.write(damage, name, in: "p")
            #expect(try RulesetHarness(disk).inForce() == RulesRegistry.denial.source)
        }
        disk.remove(name, in: "p")
        #expect(try RulesetHarness(disk).inForce() == RulesRegistry.denial.source)
        // Whose releases these are isn't known.
        for damage in ["{", #"{"format":2,"project":"p"}"#, #"{"format":1}"#] {
            try disk.write(Array(damage.utf8), ProjectRules.fileName, in: "p")
            #expect(throws: Status.self) { try RulesetHarness(disk) }
        }
    }

    /// Each step of each change may be the last of the process, done or not.
    @Test(arguments: [false, true]) func anyEndLeavesTheStateBeforeOrAfter(completesLast: Bool) throws {
        for steps in 0..<12 {
            let memory = MemoryRulesDisk()
            let disk = BreakingRulesDisk(memory)
            let rules = try RulesetHarness(disk)
            let before = try rules.create("true")
            try rules.release(before)
            disk.breakAfter(steps, completesLast: completesLast)
            var acknowledged = "true"
            var possible: Set<String?> = [source("true")]
            do {
                let after = try rules.create("1 == 1")
                possible.insert(source("1 == 1"))
                try rules.release(after)
                acknowledged = "1 == 1"
                possible = [source(acknowledged)]
                _ = try rules.send("DELETE", before)
                possible.insert(nil)
                _ = try rules.send("DELETE", "projects/p/releases/cloud.firestore")
                acknowledged = ""
                possible = [nil]
            } catch let status as Status {
                #expect(status.code == .unavailable && !status.message.contains("/secret"))
                // What was not acknowledged is not in force in this process.
                #expect(rules.inForce() == (acknowledged.isEmpty ? nil : source(acknowledged)))
            }
            let restarted = try RulesetHarness(memory)
            #expect(possible.contains(restarted.inForce()), "after \(steps) steps")
        }
    }

    @Test func concurrentChangesOfOneReleaseLoseNothing() throws {
        let disk = MemoryRulesDisk()
        let rules = try RulesetHarness(disk)
        let made = try (0..<8).map { try rules.create("1 == \($0)") }
        try rules.release(made[0])
        inThreads(8) { number in
            for _ in 0..<20 { try? rules.release(made[number]) }
            try? rules.release(made[number], "cloud.firestore/d\(number)")
        }
        let release = try rules.library.release("cloud.firestore", in: "p")
        let stored = try rules.library.ruleset(release.ruleset, in: "p").source.content
        #expect(rules.inForce() == stored)
        for number in 0..<8 { #expect(rules.inForce("d\(number)") == source("1 == \(number)")) }
        let restarted = try RulesetHarness(disk)
        #expect(restarted.inForce() == stored)
        #expect(restarted.library.releases(of: "p") == rules.library.releases(of: "p"))
    }

    @Test func rulesetsHaveABound() throws {
        let rules = try RulesetHarness()
        for _ in 0..<Limits.rulesetsPerProjectMax {
            _ = try rules.library.create(
                RulesetSource(fileName: "f", content: "service cloud.firestore { match /a/b { allow read; } }"),
                attachmentPoint: nil, in: "p")
        }
        let refusal = try rules.refusal("POST", "projects/p/rulesets", RulesetHarness.body("true"))
        #expect(refusal?.code == .resourceExhausted)
        let oldest = try #require(rules.library.rulesets(of: "p").last)
        try rules.library.delete(ruleset: oldest.id, in: "p")
        _ = try rules.create("true")
    }

    @Test func memoryHasABound() throws {
        let disk = MemoryRulesDisk()
        let piece = [UInt8](repeating: 0, count: 1 << 20)
        for number in 0..<(Limits.rulesInMemoryBytesMax >> 20) { try disk.write(piece, "\(number)", in: "f") }
        #expect(throws: Status.self) { try disk.write(piece, "more", in: "f") }
        try disk.write(piece, "0", in: "f")
        disk.remove("1", in: "f")
        try disk.write(piece, "more", in: "f")
    }

    @Test func rulesInForceHaveABound() throws {
        let rules = try RulesetHarness()
        let comment = "// " + String(repeating: "x", count: 255_000)
        let source = RulesetSource(
            fileName: "f", content: "service cloud.firestore { match /a/b { allow read; } }\n" + comment)
        let made = try (0..<2).map { _ in try rules.library.create(source, attachmentPoint: nil, in: "p").key.id }
        let count = Limits.rulesInForceBytesMax / source.content.utf8.count
        for number in 0..<count {
            let id = try rules.library.create(source, attachmentPoint: nil, in: "p").key.id
            _ = try rules.library.create(release: "cloud.firestore/db-\(number)", ruleset: id, in: "p")
        }
        #expect(throws: Status.self) {
            try rules.library.create(release: "cloud.firestore/more", ruleset: made[0], in: "p")
        }
        // What is for no database is not compiled.
        _ = try rules.library.create(release: "kept", ruleset: made[0], in: "p")
        try rules.library.delete(release: "cloud.firestore/db-0", in: "p")
        _ = try rules.library.create(release: "cloud.firestore/more", ruleset: made[0], in: "p")
        #expect(throws: Status.self) {
            try rules.library.update(release: "cloud.firestore/db-1", ruleset: made[1], in: "p")
        }
    }

    @Test func releasesAndProjectsHaveBounds() throws {
        let rules = try RulesetHarness()
        let made = try rules.create("true")
        for number in 0..<Limits.releasesPerProjectMax { try rules.release(made, "r\(number)") }
        #expect(throws: Status.self) { try rules.release(made, "more") }
        for number in 1..<Limits.projectsWithRulesMax {
            _ = try rules.library.create(
                RulesetSource(fileName: "f", content: "service cloud.firestore { match /a/b { allow read; } }"),
                attachmentPoint: nil,
                in: "q\(number)")
        }
        let refusal = try rules.refusal("POST", "projects/more/rulesets", RulesetHarness.body("true"))
        #expect(refusal?.code == .resourceExhausted)
    }
}
