import Foundation
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

/// The files of a killed process: they are copied from the system while the cache is open.
@Suite("The cache after a crash")
struct CacheCrashTests {
    private func copy(
        _ folder: TemporaryFolder, _ cache: SQLitePersistence, logBytes: Int? = nil
    ) throws -> TemporaryFolder {
        // The two files are copied one after the other; a crash preserves both at one time.
        cache.checkpointer.settle()
        let copy = TemporaryFolder()
        let (from, to) = (folder.files(), copy.files())
        try FileManager.default.createDirectory(atPath: to.folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: from.database, toPath: to.database)
        try FileManager.default.copyItem(atPath: from.lock, toPath: to.lock)
        let log = try #require(FileManager.default.contents(atPath: from.log))
        try log.prefix(logBytes ?? log.count).write(to: URL(filePath: to.log))
        return copy
    }

    private func write(_ cache: SQLitePersistence, _ number: Int) throws(Status) {
        _ = try cache.mutationQueue(for: .unauthenticated).add(
            localWriteTime: .seconds(1), base: [],
            mutations: [.set("a/\(number)", ["string": .string(String(repeating: "t", count: number * 20))])])
        try cache.overlayCache(for: .unauthenticated).save(
            [ResourcePath("a/\(number)"): .set("a/\(number)")], largestBatchID: number)
    }

    /// The batches, after a check of the file's consistency.
    private func batches(_ folder: TemporaryFolder) throws -> [Int] {
        let cache = try folder.open()
        #expect(cache.damage == nil)
        #expect(try cache.database.strings("PRAGMA integrity_check") == ["ok"])
        let ids = try cache.transaction("read") { () throws(Status) in
            let ids = try cache.mutationQueue(for: .unauthenticated).allBatches.map(\.id)
            let overlays = try cache.overlayCache(for: .unauthenticated).overlays(
                inCollection: ResourcePath("a"), above: -1)
            #expect(Set(overlays.values.map(\.largestBatchID)) == Set(ids))
            for id in ids { #expect(try cache.mutationQueue(for: .unauthenticated).contains(ResourcePath("a/\(id)"))) }
            #expect(cache.globals.highestBatchID == ids.last ?? 0)
            return ids
        }
        cache.shutDown()
        return ids
    }

    @Test("Whenever the process is killed, exactly the acknowledged writes are stored")
    func kill() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open(sizeBytes: 1 << 20)
        for number in 1...60 {
            try cache.transaction("write") { () throws(Status) in
                try write(cache, number)
                // In the middle of a transaction only committed writes count.
                if number.isMultiple(of: 7) {
                    do {
                        #expect(try batches(copy(folder, cache)) == Array(1..<number))
                    } catch {
                        Issue.record(error)
                    }
                }
            }
            if number.isMultiple(of: 5) { #expect(try batches(copy(folder, cache)) == Array(1...number)) }
        }
    }

    @Test("When the system stops, the log may end anywhere: the writes before its end are complete")
    func powerLoss() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        var lengths: [Int] = []
        for number in 1...12 {
            try cache.transaction("write") { () throws(Status) in try write(cache, number) }
            lengths.append(try #require(FileManager.default.contents(atPath: folder.files().log)).count)
        }
        var counts: Set<Int> = []
        let last = try #require(lengths.last)
        var random = SeededGenerator(seed: 20)
        for _ in 0..<60 {
            let length = lengths[0] + random.below(last - lengths[0] + 1)
            let found = try batches(copy(folder, cache, logBytes: length))
            #expect(found.count == lengths.count { $0 <= length })
            #expect(found == Array(1..<found.count + 1))
            counts.insert(found.count)
        }
        #expect(counts.count > 6)
    }
}
