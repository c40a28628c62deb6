import HearthConcurrency
import HearthEvents
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthDocuments
@testable import HearthEngine
@testable import HearthFirestoreServer

/// What readers of the change feed get, step by step.
@Suite struct ChangeReadingTests {
    /// Does what a line says to a copy.
    private func apply(_ line: ReadLine, to copy: inout [String: Int]) { copy[line.document] = line.after }

    /// Whenever a commit is over, the copy is what the database was after it; cuts come anywhere, and what is written meanwhile
    /// comes, too.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func aReaderThatIsCutAnywhereRebuildsTheDatabase(seed: UInt64) async throws {
        let site = try ChangeSite(seed: seed)
        var generator = SeededGenerator(seed: seed &+ 1000)
        var copy: [String: Int] = [:]
        var token = ChangeToken(incarnation: 0, version: 0).string
        var reading = ChangeReading(
            try ChangeParameters("after=\(token)&wait=forever"), of: site.database, stepBytes: 1)
        for _ in 0..<300 {
            if generator.chance(40) { try await site.commitSome() }
            let step = reading.readOn()
            #expect(step.failure == nil, "seed \(seed)")
            for line in try ReadLine.all(step.bytes) {
                token = line.token
                apply(line, to: &copy)
                if line.isLast { #expect(site.history[try ChangeSite.version(line)] == copy, "seed \(seed)") }
            }
            if generator.chance(15) {
                let stepBytes = generator.chance(50) ? 1 : 600
                reading = ChangeReading(
                    try ChangeParameters("after=\(token)&wait=forever"), of: site.database, stepBytes: stepBytes)
            }
        }
        for line in try site.read("after=\(token)").lines { apply(line, to: &copy) }
        #expect(copy == site.state, "seed \(seed)")
    }

    /// Each commit once, whole, in order; states that fit together; names in order; one last line.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func linesSayWhatEachCommitDid(seed: UInt64) async throws {
        let site = try ChangeSite(seed: seed)
        for _ in 0..<60 { try await site.commitSome() }
        for stepBytes in [1, 700, ChangeReading.stepBytes] {
            let lines = try site.read("since=2023-11-14T22:13:20Z", stepBytes: stepBytes).lines
            var copy: [String: Int] = [:]
            var versions: [Int64] = []
            var group: [ReadLine] = []
            for line in lines {
                #expect(line.hasBefore == (copy[line.document] != nil) && line.before == copy[line.document])
                #expect(line.hasAfter == (line.type != "deleted"))
                #expect(line.type == (line.hasBefore ? line.hasAfter ? "updated" : "deleted" : "created"))
                #expect((line.mask != nil) == (line.type == "updated"))
                if let mask = line.mask { #expect(mask == (line.before == line.after ? [] : ["n"])) }
                apply(line, to: &copy)
                group.append(line)
                guard line.isLast else { continue }
                let version = try ChangeSite.version(line)
                #expect(site.history[version] == copy)
                #expect(Set(group.map(\.time)).count == 1)
                let keys = group.map { DocumentKey.encodePath(site.name($0.document).path) }
                #expect(zip(keys, keys.dropFirst()).allSatisfy { UTF8Order.compare($0, $1) < 0 })
                for part in group.dropLast() { #expect(try ChangeSite.version(part) == versions.last ?? 0) }
                versions.append(version)
                group = []
            }
            #expect(group.isEmpty && copy == site.state)
            #expect(versions == versions.sorted() && Set(versions).count == versions.count)
            #expect(lines.count == (try site.read("since=2023-11-14T22:13:20Z&before=false").lines).count)
        }
    }

    /// The documents are those of one version, whatever is written while they are read, and what follows begins behind it.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func aSnapshotIsOfOneVersionAndTheTailHasNoGap(seed: UInt64) async throws {
        let site = try ChangeSite(seed: seed)
        for _ in 0..<20 { try await site.commitSome() }
        var generator = SeededGenerator(seed: seed &+ 2000)
        let begin = site.version
        let reading = ChangeReading(
            try ChangeParameters("snapshot=true&wait=forever"), of: site.database,
            stepBytes: generator.chance(50) ? 1 : 500)
        var copy: [String: Int] = [:]
        var isTail = false
        var step = reading.readOn()
        for round in 0..<400 {
            for line in try ReadLine.all(step.bytes) {
                #expect((line.type == "snapshot") == !isTail, "seed \(seed)")
                apply(line, to: &copy)
                let token = try ChangeToken(line.token)
                if line.type == "snapshot" { #expect(token.version == begin && token.isWithinSnapshot == !line.isLast) }
                if line.isLast {
                    #expect(site.history[token.version] == copy, "seed \(seed)")
                    isTail = true
                }
            }
            #expect(step.failure == nil)
            if round < 200, generator.chance(50) { try await site.commitSome() }
            step = reading.readOn()
        }
        #expect(isTail && copy == site.state, "seed \(seed)")
    }

    @Test func aTokenWithinASnapshotBeginsANewOne() async throws {
        let site = try ChangeSite()
        try await site.commit([("a/d1", 1), ("a/d2", 2)])
        let first = try #require(try site.read("snapshot=true").lines.first)
        try await site.commit([("a/d3", 3)])
        let again = try site.read("after=\(first.token)").lines
        #expect(again.map(\.document) == ["a/d1", "a/d2", "a/d3"] && again.allSatisfy { $0.type == "snapshot" })
    }

    @Test func patternsChooseDocumentsAndLastMarksTheLastThatMatches() async throws {
        let site = try ChangeSite()
        try await site.commit([("a/d1", 1), ("a/d1/b/x", 2), ("z/k", 3)])
        try await site.commit([("z/k", 4)])
        for (pattern, expected) in [
            ("a/{d}", ["a/d1"]), ("a/**", ["a/d1", "a/d1/b/x"]), ("a/d1/b/*", ["a/d1/b/x"]), ("z/k", ["z/k", "z/k"]),
            ("{all=**}", ["a/d1", "a/d1/b/x", "z/k", "z/k"]), ("*/d1/**", ["a/d1", "a/d1/b/x"]), ("y/{d}", []),
        ] {
            let lines = try site.read("after=\(ChangeToken(incarnation: 0, version: 0).string)&document=\(pattern)")
                .lines
            #expect(lines.map(\.document) == expected, "\(pattern)")
            #expect(lines.last?.isLast ?? true, "\(pattern)")
            let snapshot = try site.read("snapshot=true&document=\(pattern)").lines
            #expect(snapshot.map(\.document) == Array(Set(expected)).sorted(), "\(pattern)")
            #expect(snapshot.last?.isLast ?? true, "\(pattern)")
        }
    }

    @Test func aLimitEndsAtTheEndOfACommit() async throws {
        let site = try ChangeSite()
        for number in 0..<5 { try await site.commit([("a/d1", number), ("a/d2", number), ("a/d3", number)]) }
        let start = "after=\(ChangeToken(incarnation: 0, version: 0).string)"
        for (limit, expected) in [(1, 3), (3, 3), (4, 6), (100, 15)] {
            #expect(try site.read("\(start)&limit=\(limit)").lines.count == expected)
            #expect(try site.read("\(start)&limit=\(limit)", stepBytes: 1).lines.count == expected)
        }
        #expect(try site.read("snapshot=true&limit=1").lines.count == 3)
    }

    /// With `wait=0` a reader gets what there was when it began, however fast others write.
    @Test func withoutWaitingTheEndIsThePresentOfTheBeginning() async throws {
        let site = try ChangeSite()
        for _ in 0..<5 { try await site.commitSome() }
        let reading = ChangeReading(
            try ChangeParameters("after=\(ChangeToken(incarnation: 0, version: 0).string)"), of: site.database,
            stepBytes: 1)
        let target = site.version
        var steps = 0
        while true {
            let step = reading.readOn()
            if step.isOver { break }
            try await site.commitSome()
            steps += 1
            #expect(steps < 100)
            if steps >= 100 { break }
        }
        #expect(site.version > target)
    }

    // MARK: Many changes of one document

    @Test func aDocumentThatChangedOftenIsReadInPieces() async throws {
        let site = try ChangeSite()
        let count = 5000
        for number in 0..<count { try await site.commit([("a/d1", number)]) }
        let reading = ChangeReading(
            try ChangeParameters("after=\(ChangeToken(incarnation: 0, version: 0).string)"), of: site.database)
        var numbers: [Int] = []
        var neededTime = false
        while numbers.count < count {
            let step = reading.readOn()
            try #require(step.failure == nil)
            numbers += try ReadLine.all(step.bytes).compactMap(\.after)
            neededTime = neededTime || reading.needsTime
        }
        #expect(numbers == Array(0..<count) && neededTime)
    }

    /// The first step ends when the second document turns out to have changed often: what came before is not read again.
    @Test func aFirstStepThatBecomesHeavyGoesOnWhereItWas() async throws {
        let site = try ChangeSite()
        let count = 5000
        try await site.commit([("a/x", 7)])
        for number in 0..<count { try await site.commit([("a/d1", number)]) }
        let reading = ChangeReading(
            try ChangeParameters("after=\(ChangeToken(incarnation: 0, version: 0).string)"), of: site.database)
        var numbers: [Int] = []
        while numbers.count <= count {
            let step = reading.readOn()
            try #require(step.failure == nil)
            numbers += try ReadLine.all(step.bytes).compactMap(\.after)
        }
        #expect(numbers == [7] + Array(0..<count))
    }

    @Test func chainsAreWalkedAgainWhenTheyAreTooLongToRemember() async throws {
        let site = try ChangeSite()
        var versions: [Int64] = []
        for number in 0..<200 {
            try await site.commit([("a/d1", number), ("a/d2", number)])
            versions.append(site.version)
        }
        let snapshot = try site.database.store.snapshot()
        defer { snapshot.close() }
        for versionsMax in [1, 7, 1000] {
            var chains = DocumentChains(versionsMax: versionsMax)
            for (version, next) in zip(versions, versions.dropFirst()) {
                for path in ["a/d1", "a/d2"] {
                    let found = try chains.next(
                        after: version, DocumentKey.encode(site.name(path).path), in: snapshot,
                        FeedBudget.long { () throws(Status) in })
                    #expect(found == next)
                }
            }
        }
    }

    /// Documents that change in the same commits share what is remembered, so that none is walked anew for each of its changes.
    @Test func documentsDoNotTakeTheMemoryOfEachOther() async throws {
        let site = try ChangeSite()
        let paths = (0..<5).map { "a/d\($0)" }
        var versions: [Int64] = []
        for number in 0..<600 {
            try await site.commit(paths.map { ($0, number) })
            versions.append(site.version)
        }
        let snapshot = try site.database.store.snapshot()
        defer { snapshot.close() }
        var chains = DocumentChains(versionsMax: 1000)
        let checks = SharedBox(Mutex(0))
        let budget = FeedBudget.long { () throws(Status) in checks.value.withLock { $0 += 1 } }
        for (version, next) in zip(versions, versions.dropFirst()) {
            for path in paths {
                let key = DocumentKey.encode(site.name(path).path)
                #expect(try chains.next(after: version, key, in: snapshot, budget) == next)
            }
        }
        // A check is 256 steps; without memory there were 900,000.
        #expect(checks.value.withLock { $0 } < 80_000 / 256)
    }

    /// More documents than can be remembered.
    @Test func manyDocumentsAreReadExactly() async throws {
        let site = try ChangeSite()
        var versions: [Int64] = []
        for number in 0..<20 {
            try await site.commit((0..<300).map { ("b/d\($0)", number) })
            versions.append(site.version)
        }
        let snapshot = try site.database.store.snapshot()
        defer { snapshot.close() }
        for versionsMax in [10, 500, 5000] {
            var chains = DocumentChains(versionsMax: versionsMax)
            for (version, next) in zip(versions, versions.dropFirst()) {
                for number in 0..<300 {
                    let key = DocumentKey.encode(site.name("b/d\(number)").path)
                    let found = try chains.next(
                        after: version, key, in: snapshot, FeedBudget.long { () throws(Status) in })
                    #expect(found == next)
                }
            }
        }
    }

    /// Deletions have short lines; what is read for them is the documents.
    @Test func aStepIsBoundedByTheBytesThatItReads() async throws {
        let site = try ChangeSite()
        let filling = String(repeating: "x", count: 100_000)
        let paths = (100..<300).map { "big/\($0)" }
        for path in paths { try await site.database.put(path, ["t": .string(filling)]) }
        let begin = ChangeToken(incarnation: site.database.incarnation, version: site.database.newestVersion).string
        try await site.commit(paths.map { ($0, nil) })
        for pattern in ["", "&document=big/*"] {
            let reading = ChangeReading(
                try ChangeParameters("after=\(begin)&before=false&wait=forever\(pattern)"), of: site.database)
            var lines: [ReadLine] = []
            var steps = 0
            while lines.last?.isLast != true {
                let step = reading.readOn()
                try #require(step.failure == nil && steps < 100)
                // Some megabytes.
                #expect(step.lines < 50)
                lines += try ReadLine.all(step.bytes)
                steps += 1
            }
            #expect(lines.map(\.document) == paths && lines.allSatisfy { $0.type == "deleted" })
        }
    }

    /// Documents that changed often since the snapshot began are walked back to it, and that gives way to others.
    @Test func snapshotsPayForWhatTheyWalkOver() async throws {
        let site = try ChangeSite()
        // So that a change isn't found soon from the snapshot on, either.
        func commitOthers(_ value: Int) async throws {
            for part in 0..<10 { try await site.commit((0..<400).map { ("b/d\(part).\($0)", value) }) }
        }
        try await site.commit([("a/d1", -1), ("a/d2", -2)])
        let reading = ChangeReading(try ChangeParameters("snapshot=true&document=a/*"), of: site.database)
        #expect(reading.readOn().failure == nil && reading.needsTime)
        try await commitOthers(1)
        for number in 0..<1000 { try await site.commit([("a/d1", number)]) }
        try await site.commit([("a/d1", nil)])
        let checks = SharedBox(Mutex(0))
        let step = reading.readOn { () throws(Status) in checks.value.withLock { $0 += 1 } }
        #expect(try ReadLine.all(step.bytes).map(\.after) == [-1, -2])
        #expect(checks.value.withLock { $0 } >= 3)
        // A step that is ended within begins the document again.
        let second = ChangeReading(try ChangeParameters("snapshot=true&document=a/*"), of: site.database)
        #expect(second.readOn().failure == nil)
        try await commitOthers(2)
        for number in 0..<1000 { try await site.commit([("a/d2", number)]) }
        #expect(second.readOn { () throws(Status) in throw .unavailable("Not now.") }.failure?.code == .unavailable)
        #expect(try ReadLine.all(second.readOn().bytes).map(\.after) == [-2])
    }

    /// Commits that may have lines for a reader are in the scope that it watches.
    @Test func theScopeHasAllThatMatches() throws {
        let paths = Self.scopePaths.map { ResourcePath($0.split(separator: "/").map(String.init)) }
        for (pattern, isNarrow) in [
            ("{all=**}", false), ("a/{d}", true), ("a/d", true), ("a/{d}/b/{x}", true), ("a/d/b/*", true),
            ("a/**", false), ("**/b/x", true), ("{p=**}/b/{x}", true), ("*/{d}", false), ("a/d*", true),
            ("{c}/b/**", false), ("{c}/d/b/x*", true), ("**/d", false), ("b/**/x", false),
        ] {
            let parameters = try ChangeParameters("document=\(pattern)")
            let parsed = try #require(parameters.pattern)
            #expect((parameters.scope != .everything) == isNarrow, "\(pattern)")
            for path in paths where parsed.matches(EventPath(path.string)) {
                #expect(
                    ChangeHub.scopes(of: DocumentKey.encode(path)).contains(parameters.scope), "\(pattern) \(path)")
            }
        }
        #expect(try ChangeParameters("").scope == .everything)
    }

    private static let scopePaths = [
        "a/d", "a/e", "a/d/b/x", "a/e/b/x", "b/x", "c/d/b/x", "c/d", "a/d/b/x/b/x", "a-/d", "b/x/c/x", "b/y/b/x",
    ]

    // MARK: Retention

    /// Neither a clock that is years ahead nor one that is not set ends the feed, and in time commits fall out of it all the same.
    @Test(arguments: [10, -50] as [Int64]) func aWrongClockIsNotTheAge(years: Int64) async throws {
        let site = try ChangeSite()
        site.database.setChangesRetention(seconds: 100)
        try await site.commit([("a/d1", 1)])
        let first = try #require(try site.read("after=\(ChangeToken(incarnation: 0, version: 0).string)").lines.last)
        site.database.tick()
        try await site.commit([("a/d1", 2)])
        site.clock.jump(microseconds: years * 365 * 86_400_000_000)
        try await site.commit([("a/d1", 3)])
        site.database.tick()
        #expect(try site.read("after=\(first.token)").lines.map(\.after) == [2, 3])
        for _ in 0..<110 {
            site.clock.advance(seconds: 1)
            try await site.commit([("a/d2", 1)])
            site.database.tick()
        }
        #expect(try site.read("after=\(first.token)").failure?.code == .outOfRange)
        #expect(try site.read("snapshot=true").failure == nil)
    }

    /// The same over a start: what an earlier run has written is not deleted.
    @Test func aClockThatIsAheadAtTheStartDeletesNothing() async throws {
        let site = try ChangeSite()
        try await site.commit([("a/d1", 1)])
        let first = try #require(try site.read("after=\(ChangeToken(incarnation: 0, version: 0).string)").lines.last)
        try await site.commit([("a/d1", 2)])
        site.clock.jump(microseconds: 10 * 365 * 86_400_000_000)
        let again = try Database(name: site.database.name, store: site.database.store, clock: site.clock)
        try await again.put("a/d1", ["n": .integer(3)])
        _ = try await withCheckedThrowingContinuation { continuation in
            again.collectGarbage { continuation.resume(with: $0) }
        }
        let step = ChangeReading(try ChangeParameters("after=\(first.token)"), of: again).readOn()
        #expect(step.failure == nil)
        #expect(try ReadLine.all(step.bytes).map(\.after) == [2, 3])
    }

    @Test func positionsBehindTheRetentionAreGone() async throws {
        let site = try ChangeSite()
        site.database.setChangesRetention(seconds: 10)
        try await site.commit([("a/d1", 1)])
        let first = try #require(try site.read("after=\(ChangeToken(incarnation: 0, version: 0).string)").lines.last)
        let slow = ChangeReading(try ChangeParameters("after=\(first.token)&wait=forever"), of: site.database)
        #expect(slow.readOn().failure == nil)
        try await site.commit([("a/d1", 2)])
        let second = try #require(try site.read("after=\(first.token)").lines.last)
        site.clock.advance(seconds: 11)
        // Nothing is lost behind the second one.
        #expect(try site.read("after=\(second.token)").failure == nil)
        #expect(try site.read("after=\(first.token)").failure?.code == .outOfRange)
        #expect(try site.read("since=2023-11-14T22:13:20Z").failure?.code == .outOfRange)
        #expect(slow.readOn().failure?.code == .outOfRange)
        try await site.commit([("a/d1", 3)])
        #expect(try site.read("after=\(second.token)").lines.map(\.after) == [3])
        #expect(try site.read("snapshot=true").lines.map(\.after) == [3])
    }

    @Test func whatIsPrunedIsNotRead() async throws {
        let site = try ChangeSite()
        try await site.commit([("a/d1", 1)])
        try await site.commit([("a/d1", 2)])
        // Longer for readers than the history is kept.
        site.database.changesHorizon.keep(seconds: 1_000_000)
        site.clock.advance(seconds: Double(Limits.retentionSeconds) + 100)
        try await site.commit([("a/d1", 3)])
        try await collect(site)
        let begin = "after=\(ChangeToken(incarnation: 0, version: 0).string)"
        #expect(try site.read(begin).failure?.code == .outOfRange)
        #expect(try site.read("since=2023-11-14T22:13:20Z").failure?.code == .outOfRange)
    }

    private func collect(_ site: ChangeSite) async throws {
        var isMore = true
        while isMore {
            isMore = try await withCheckedThrowingContinuation { continuation in
                site.database.collectGarbage { continuation.resume(with: $0) }
            }
        }
    }

    @Test func aLongerRetentionKeepsTheHistory() async throws {
        let site = try ChangeSite()
        site.database.setChangesRetention(seconds: 3 * 3600)
        try await site.commit([("a/d1", 1)])
        let past = site.clock.now()
        try await site.commit([("a/d1", 2)])
        let begin = "after=\(ChangeToken(incarnation: 0, version: 0).string)"
        for _ in 0..<17 {
            site.clock.advance(seconds: 600)
            try await site.commit([("a/d2", 1)])
            try await collect(site)
        }
        #expect(try site.read("\(begin)&document=a/d1").lines.map(\.after) == [1, 2])
        // Reads in the past go back as far.
        #expect(throws: Never.self) { try site.database.check(readTime: past) }
        #expect(try site.database.view(at: past.microseconds, readTime: past).document(site.name("a/d1").path) != nil)
        for _ in 0..<4 {
            site.clock.advance(seconds: 600)
            try await site.commit([("a/d2", 1)])
            try await collect(site)
        }
        #expect(try site.read(begin).failure?.code == .outOfRange)
    }

    @Test func positionsOfAnotherHistoryAreGone() async throws {
        let site = try ChangeSite()
        try await site.commit([("a/d1", 1)])
        let token = try ChangeToken(
            #require(try site.read("after=\(ChangeToken(incarnation: 0, version: 0).string)").lines.last).token)
        for other in [
            ChangeToken(incarnation: token.incarnation ^ 1, version: token.version),
            // A backup was restored that does not have this commit.
            ChangeToken(incarnation: token.incarnation, version: token.version + 5),
            ChangeToken(incarnation: token.incarnation, version: token.version - 5),
            ChangeToken(incarnation: 0, version: token.version),
            ChangeToken(incarnation: token.incarnation, version: -1),
            ChangeToken(incarnation: token.incarnation, version: .max),
        ] {
            #expect(try site.read("after=\(other.string)").failure?.code == .outOfRange, "\(other)")
        }
        let live = ChangeReading(try ChangeParameters("after=\(token.string)&wait=forever"), of: site.database)
        #expect(live.readOn().failure == nil)
        try await withCheckedThrowingContinuation { continuation in
            site.database.clear { continuation.resume(with: $0) }
        }
        #expect(live.readOn().failure?.code == .outOfRange)
        #expect(try site.read("after=\(token.string)").failure?.code == .outOfRange)
    }

    // MARK: Parameters

    @Test func wrongParametersAreNamed() {
        for (query, name) in [
            ("after=x", "after"), ("after=", "after"), ("since=yesterday", "since"), ("since=", "since"),
            ("snapshot=yes", "snapshot"), ("before=1", "before"), ("document=a", "document"), ("document=", "document"),
            ("document=a/**/b/**", "document"), ("wait=-1", "wait"), ("wait=", "wait"), ("wait=1.", "wait"),
            ("wait=1e3", "wait"), ("wait=604801", "wait"), ("wait=nan", "wait"), ("limit=0", "limit"),
            ("limit=-1", "limit"), ("limit=99999999999999999999", "limit"), ("limit=", "limit"), ("afer=x", "afer"),
            ("limit=1&limit=2", "limit"), ("snapshot=true&since=2023-11-14T22:13:20Z", "snapshot"),
        ] {
            do throws(Status) {
                _ = try ChangeParameters(query)
                Issue.record("\(query) is taken")
            } catch {
                #expect(
                    error.code == .invalidArgument && error.message.contains("\"\(name)\""),
                    "\(query): \(error.message)")
            }
        }
    }

    @Test func goodParametersAreTaken() throws {
        #expect(try ChangeParameters("wait=forever").wait == .forever)
        #expect(try ChangeParameters("wait=1.25").wait == .milliseconds(1250))
        #expect(try ChangeParameters("wait=604800").wait == .milliseconds(604_800_000))
        #expect(try ChangeParameters("").wait == .milliseconds(0))
        #expect(try ChangeParameters("before=false").hasBefore == false)
        #expect(try ChangeParameters("limit=7").linesMax == 7)
        let token = ChangeToken(incarnation: 3, version: 4)
        let resumed = try ChangeParameters(
            query: "snapshot=true", lastEventID: token.string, accept: "text/event-stream")
        guard case .after(token) = resumed.start else {
            Issue.record("The field last-event-id is not the beginning.")
            return
        }
        #expect(resumed.form == .events)
    }
}
