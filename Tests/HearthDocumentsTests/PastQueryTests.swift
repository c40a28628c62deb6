import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// The cost of a query of a past state, and when it arises.
@Suite struct PastQueryTests: TransactionBench {
    let clock = StoppedClock()
    let database: Database

    init() throws {
        database = try Self.open(clock)
    }

    /// Changes this many documents, and returns the time before.
    private func change(_ count: Int) throws -> Timestamp {
        let before = try database.view().readTime
        clock.advance(seconds: 1)
        for start in stride(from: 0, to: count, by: 400) {
            try database.commit((start..<min(count, start + 400)).map { set("c/\($0)", Int64($0)) })
        }
        return before
    }

    private static func requester() -> Requester { Requester(account: 1, connection: 1, isAdministrator: false) }

    @Test(arguments: [100, 1000, 5000]) func planningReadsNoChanges(_ count: Int) throws {
        let before = try change(count)
        let query = try NormalizedQuery(Query(parent: resource(""), scope: .collection("c")))
        let meter = WorkMeter()
        let execution = try QueryExecution(query, view: try database.pastView(at: before), meter: meter)
        #expect(!execution.isLight)
        #expect(meter.entriesScanned == 0)
        #expect(meter.documentsRead == 0)
        var results = 0
        while try execution.next() != nil { results += 1 }
        // c/a and c/b.
        #expect(results == 2)
        #expect(meter.entriesScanned >= count)
    }

    @Test func changedKeysAreCountedWhileTheQueryHoldsThem() throws {
        try database.commit((0..<400).map { set("c/\($0)", -1) })
        let before = try change(5000)
        let query = try NormalizedQuery(Query(parent: resource(""), scope: .collection("c")))
        let budget = MemoryBudget(bytesMax: 64 << 20, shareBytesMax: 64 << 20)
        do {
            let meter = WorkMeter(memory: budget.reservation(for: Self.requester())) {}
            var execution: QueryExecution? = try QueryExecution(
                query, view: try database.pastView(at: before), meter: meter)
            #expect(budget.usedBytes == 0)
            var results = 0
            while try execution?.next() != nil { results += 1 }
            #expect(results == 402)
            // 5,000 keys, and those of 400 results.
            #expect(budget.usedBytes >= 5000 * 100)
            execution = nil
            // Except for the reserve of a meter, which reduces its requests.
            #expect(budget.usedBytes <= 1 << 20)
        }
        #expect(budget.usedBytes == 0)
        let small = MemoryBudget(bytesMax: 256 << 10, shareBytesMax: 256 << 10)
        let status = statusOf { () throws(Status) in
            let meter = WorkMeter(memory: small.reservation(for: Self.requester())) {}
            _ = try QueryExecution(query, view: try database.pastView(at: before), meter: meter).next()
        }
        #expect(status?.code == .resourceExhausted)
        #expect(small.usedBytes == 0)
    }
}
