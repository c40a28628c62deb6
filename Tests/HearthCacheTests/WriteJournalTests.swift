import Foundation
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthCache

@Suite("The journal of writes beside a cache")
struct WriteJournalTests {
    private let folder = TemporaryFolder()

    private func append(_ journal: WriteJournal, _ contents: [UInt8]) throws -> WriteJournal.Entry {
        var entry: WriteJournal.Entry?
        try journal.append(contents) { entry = $0 }
        return try #require(entry)
    }

    /// Opens a file whose end is whole.
    private func open(
        _ file: CacheFile, applied: Int64
    ) throws(Status) -> (journal: WriteJournal, records: [WriteJournal.Record]) {
        try WriteJournal.open(file, applied: applied) { Issue.record("\($0)") }
    }

    private func numbers(_ records: [WriteJournal.Record]) -> [Int64] { records.map(\.number) }

    @Test func theNextOpeningReturnsWhatIsNotInTheDatabase() throws {
        let (first, none) = try open(folder.file, applied: 7)
        #expect(none.isEmpty)
        for number in 8...12 {
            #expect(try append(first, Array(repeating: UInt8(number), count: number)).number == Int64(number))
        }
        first.applied(9)
        first.close()
        let (second, records) = try open(folder.file, applied: 9)
        #expect(numbers(records) == [10, 11, 12])
        #expect(records.map(\.contents) == [10, 11, 12].map { Array(repeating: UInt8($0), count: $0) })
        #expect(try append(second, [1]).number == 13, "numbers continue")
        second.applied(13)
        second.close()
        #expect(try open(folder.file, applied: 13).records.isEmpty)
    }

    @Test func aFailedWriteIsWithdrawn() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        _ = try append(journal, [1])
        let failed = try append(journal, [2])
        _ = try append(journal, [3])
        try journal.withdraw(failed)
        #expect(numbers(try open(folder.file, applied: 0).records) == [1, 3])
        #expect(numbers(try open(folder.file, applied: 1).records) == [3])
        journal.close()
    }

    @Test func itIsEmptiedWhenTheDatabaseHasAll() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        var last: Int64 = 0
        var sizes: Set<Int> = []
        for _ in 0..<300 {
            last = try append(journal, [UInt8](repeating: 1, count: 1000)).number
            journal.applied(last)
            sizes.insert(try #require(FileManager.default.contents(atPath: folder.file.journal)).count)
        }
        #expect(try #require(sizes.max()) < 100_000)
        journal.close()
        #expect(FileManager.default.contents(atPath: folder.file.journal)?.isEmpty == true)
        #expect(try append(open(folder.file, applied: last).journal, [1]).number == last + 1)
    }

    /// The end of the file may be missing after a power failure, or the last record after a kill.
    @Test func aPartOfARecordIsIgnoredAndReplaced() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        var ends = [0]
        for number in 1...4 {
            _ = try append(journal, [UInt8](repeating: 9, count: 10 * number))
            ends.append(try #require(FileManager.default.contents(atPath: folder.file.journal)).count)
        }
        let whole = try #require(FileManager.default.contents(atPath: folder.file.journal))
        let other = TemporaryFolder()
        for count in 0...whole.count {
            let file = CacheFile(folder: other.path, name: "\(count).sqlite", lockName: "lock")
            try whole.prefix(count).write(to: URL(fileURLWithPath: file.journal))
            let complete = ends.lastIndex { $0 <= count } ?? 0
            var warnings: [String] = []
            let (cut, records) = try WriteJournal.open(file, applied: 0) { warnings.append($0) }
            #expect(warnings.count == (ends.contains(count) ? 0 : 1))
            #expect(records.count == complete)
            #expect(try append(cut, [5, 5]).number == Int64(complete + 1))
            let again = try open(file, applied: 0).records
            #expect(again.count == complete + 1 && again.last?.contents == [5, 5])
        }
        // A bit that is not the one that was written.
        for index in whole.indices {
            var damaged = whole
            damaged[index] ^= 1 << UInt8(index % 8)
            let file = CacheFile(folder: other.path, name: "damaged-\(index).sqlite", lockName: "lock")
            try damaged.write(to: URL(fileURLWithPath: file.journal))
            var warnings: [String] = []
            let found = try WriteJournal.open(file, applied: 0) { warnings.append($0) }
            let isState = index - (ends.last { $0 <= index } ?? 0) == 16
            #expect(warnings.count == (isState ? 0 : 1))
            #expect(!isState || found.records.count == 4)
            for record in found.records {
                #expect(record.contents.allSatisfy { $0 == 9 } && record.contents.count == 10 * Int(record.number))
            }
        }
    }

    @Test func damageCostsTheRecordsInWhichItIs() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        for number in UInt8(1)...4 { _ = try append(journal, [UInt8](repeating: number, count: 100)) }
        let whole = try #require(FileManager.default.contents(atPath: folder.file.journal))
        let size = whole.count / 4
        func check(_ damaged: Data, applied: Int64 = 0, lost: ClosedRange<Int64>, lostBytes: Int) throws {
            try damaged.write(to: URL(fileURLWithPath: folder.file.journal))
            var warnings: [String] = []
            let (second, records) = try WriteJournal.open(folder.file, applied: applied) { warnings.append($0) }
            let expected = (1...Int64(4)).filter { $0 > applied && !lost.contains($0) }
            #expect(numbers(records) == expected)
            #expect(records.allSatisfy { $0.contents == [UInt8](repeating: UInt8($0.number), count: 100) })
            #expect(warnings.count == 1 && warnings[0].hasPrefix("\(lostBytes) bytes"))
            let next = (expected.last ?? applied) + 1
            #expect(try append(second, [7]).number == next)
            let again = try WriteJournal.open(folder.file, applied: applied) { _ in }.records
            #expect(numbers(again) == expected + [next] && again.last?.contents == [7])
        }
        for index in 0..<4 {
            for byte in [0, 3, 4, 8, 15, 17, size - 1] {
                var damaged = whole
                damaged[index * size + byte] ^= 0x41
                try check(damaged, lost: Int64(index + 1)...Int64(index + 1), lostBytes: size)
            }
        }
        // A page that was never written, and bytes that are missing.
        var zeros = whole
        zeros.replaceSubrange((size + 50)..<(2 * size + 50), with: Data(count: size))
        try check(zeros, lost: 2...3, lostBytes: 2 * size)
        try check(zeros, applied: 1, lost: 2...3, lostBytes: 2 * size)
        try check(whole[..<(size + 20)] + whole[(2 * size - 20)...], lost: 2...2, lostBytes: 40)
        try check(Data(whole[9...]), lost: 1...1, lostBytes: size - 9)
    }

    /// The search for a whole record reads the file a few times, whatever looks like the head of one.
    @Test func damageCostsLittleTime() throws {
        var contents: [UInt8] = []
        // Heads of records that extend to the end of the file, and are none.
        for _ in 0..<80_000 { contents += [0, 0, 16, 0, 1, 2, 3, 4, 2, 0, 0, 0, 0, 0, 0, 0, 255] }
        contents += [UInt8](repeating: 0, count: 1_200_000)
        try Data(contents).write(to: URL(fileURLWithPath: folder.file.journal))
        let start = threadSeconds()
        _ = try WriteJournal.open(folder.file, applied: 0) { _ in }
        let seconds = threadSeconds() - start
        #expect(seconds < 5, "\(seconds) s")
    }

    @Test func aFullDiskFailsTheCall() throws {
        try FileManager.default.createSymbolicLink(atPath: folder.file.journal, withDestinationPath: "/dev/full")
        let (journal, _) = try open(folder.file, applied: 0)
        var codes: [Status.Code] = []
        do throws(Status) { try journal.append([1]) { _ in Issue.record("it is not stored") } } catch {
            codes.append(error.code)
        }
        #expect(codes == [.resourceExhausted])
    }

    @Test func afterTheEndCallsFail() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        let entry = try append(journal, [1])
        journal.close()
        #expect(throws: WriteJournal.closed) { try journal.append([2]) { _ in } }
        try journal.withdraw(entry)
        #expect(numbers(try open(folder.file, applied: 0).records) == [1], "the next client makes it")
    }

    @Test func callsOfManyThreadsAreStoredInTheOrderInWhichTheyAreEnqueued() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        let enqueued = Gathered<UInt8>()
        inThreads(8) { thread in
            for number in 0..<30 {
                let content = UInt8(thread * 30 + number)
                do {
                    try journal.append([content]) { _ in enqueued.append(content) }
                } catch {
                    Issue.record(error)
                }
            }
        }
        #expect(try open(folder.file, applied: 0).records.map(\.contents) == enqueued.values.map { [$0] })
    }

    /// Also when a thread is interrupted between the two.
    @Test func noCallIsEnqueuedWhileAnotherIs() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        let enqueued = Gathered<UInt8>()
        let isEnqueuing = Promise<Void>()
        inThreads(2) { thread in
            do {
                if thread == 0 {
                    try journal.append([1]) { _ in
                        isEnqueuing.give(())
                        // Time for the other call, which waits.
                        for _ in 0..<100 where enqueued.values.isEmpty { usleep(1000) }
                        enqueued.append(1)
                    }
                } else {
                    isEnqueuing.wait()
                    try journal.append([2]) { _ in enqueued.append(2) }
                }
            } catch {
                Issue.record(error)
            }
        }
        #expect(enqueued.values == [1, 2])
    }
}
