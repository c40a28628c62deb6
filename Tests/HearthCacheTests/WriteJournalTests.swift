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

    @Test func recordsAfterADamagedOneAreReportedAndReplaced() throws {
        let (journal, _) = try open(folder.file, applied: 0)
        for _ in 0..<3 { _ = try append(journal, [UInt8](repeating: 9, count: 100)) }
        let whole = try #require(FileManager.default.contents(atPath: folder.file.journal))
        let size = whole.count / 3
        for damagedIndex in 0..<3 {
            for byte in [4, 8, 15, 17, size - 1] {
                var damaged = whole
                damaged[damagedIndex * size + byte] ^= 0x41
                try damaged.write(to: URL(fileURLWithPath: folder.file.journal))
                var warnings: [String] = []
                let (second, records) = try WriteJournal.open(folder.file, applied: 0) { warnings.append($0) }
                #expect(records.count == damagedIndex)
                #expect(warnings.count == 1 && warnings[0].contains("\((3 - damagedIndex) * size) bytes"))
                #expect(try append(second, [7]).number == Int64(damagedIndex) + 1)
                let again = try open(folder.file, applied: 0).records
                #expect(numbers(again) == (1...Int64(damagedIndex + 1)).map { $0 } && again.last?.contents == [7])
            }
        }
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
}
