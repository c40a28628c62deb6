import HearthConcurrency
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The memory of commits that wait for the writers of all databases is bounded together: a client may write to any
/// number of databases.
@Suite struct CommitMemoryTests {
    /// A worker that runs when the test calls it.
    private final class HeldDriver: WorkerDriver, @unchecked Sendable {
        // One thread uses all of this.
        private let body: @Sendable () -> Void
        private var isAwake = false

        init(_ body: @escaping @Sendable () -> Void) { self.body = body }

        func wake() -> Bool {
            isAwake = true
            return true
        }

        func stop() {
            while isAwake {
                isAwake = false
                body()
            }
        }
    }

    private let memory = DatabaseMemory(
        commits: MemoryBudget(
            bytesMax: 8 << 20, clientsBytesMax: 6 << 20, shareBytesMax: 4 << 20, smallBytesMax: 16 << 10))

    private func databases(_ count: Int) throws -> [Database] {
        try (0..<count).map { number in
            let name = DatabaseName(project: "p", database: "d\(number)")
            return try Database(
                name: name, store: MemoryStore(), clock: StoppedClock(), memory: memory
            ) { _, _, body in
                HeldDriver(body)
            }
        }
    }

    /// 30,000 elements, which take a megabyte and were 120 KB on the wire.
    private func commit(_ database: Database, _ requester: Requester, _ answers: Answers) throws {
        let name = try ResourceName(document: database.name.string + "/documents/c/a")
        let write = Write(
            document: name,
            operation: .update(fields: map(("a", .array(Array(repeating: .null, count: 30_000)))), mask: nil))
        database.commit([write], sizeBytes: 120_000, requester: requester) { result in answers.note(result) }
    }

    private final class Answers: Sendable {
        private let codes = Mutex<[Status.Code?]>([])

        func note(_ result: Result<CommitOutcome, Status>) {
            codes.withLock { codes in
                switch result {
                case .success: codes.append(nil)
                case .failure(let status): codes.append(status.code)
                }
            }
        }

        func count(_ code: Status.Code?) -> Int { codes.withLock { $0.count { $0 == code } } }
    }

    private func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    @Test(arguments: [1, 10, 100]) func waitingCommitsAreBoundedAcrossDatabases(count: Int) throws {
        let databases = try databases(count)
        let answers = Answers()
        for number in 0..<400 {
            try commit(databases[number % count], client(1, UInt64(number)), answers)
            #expect(memory.commits.usedBytes <= memory.commits.shareBytesMax)
        }
        #expect(answers.count(.resourceExhausted) > 390)
        // Commits of others do not fail because of it, least of all an administrator's.
        try commit(databases[0], client(2, 1), answers)
        let refused = answers.count(.resourceExhausted)
        for number in 0..<100 { try commit(databases[number % count], client(3, UInt64(number)), Answers()) }
        #expect(memory.commits.usedBytes <= 6 << 20)
        try commit(databases[0], .administrator(connection: 7), answers)
        #expect(answers.count(.resourceExhausted) == refused)
        for database in databases { database.close() }
        #expect(memory.commits.usedBytes == 0)
        #expect(answers.count(nil) >= 3)
    }
}
