import HearthModel
import HearthDocuments
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthSQLite

/// The pages in memory are those of the file, also when transactions that lengthened it are rolled back.
struct PageCacheTests {
    private let folder = TemporaryFolder()

    @Test(arguments: [1 << 20, 64 << 20]) func aRolledBackCommitIsNotRemembered(cacheBytes: Int) throws {
        var options = SQLiteStoreOptions()
        options.writerCache = CacheBudget(bytesMax: cacheBytes, eachBytesMax: cacheBytes, eachBytesMin: cacheBytes)
        let path = folder.path + "/a.sqlite"
        let store = try SQLiteStore(path: path, options: options)
        var model: [[UInt8]: [UInt8]] = [:]
        var random = SystemRandomNumberGenerator()
        for round in 0..<120 {
            let isGivenUp = round % 3 == 1
            var next = model
            do throws(Status) {
                try store.write { transaction throws(Status) in
                    // In a random order, so that trees are rebalanced all the time.
                    for _ in 0..<150 {
                        let number = Int.random(in: 0..<4000, using: &random)
                        if round % 5 == 4 {
                            try transaction.delete(.entries, key(number))
                            next[key(number)] = nil
                        } else {
                            let value = [UInt8](
                                repeating: UInt8(round), count: Int.random(in: 0..<900, using: &random))
                            try transaction.put(.entries, key(number), value)
                            next[key(number)] = value
                        }
                    }
                    if isGivenUp { throw .aborted("given up") }
                }
                model = next
            } catch {
                #expect(isGivenUp && error == .aborted("given up"))
            }
        }
        let found = try store.write { transaction throws(Status) in
            try rows(transaction.scan(.entries, .all, reverse: false, values: true))
        }
        #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.key, $0.value) }) == model)
        store.close()
        options.isReadOnly = true
        #expect(try SQLiteStore(path: path, options: options).damage(max: 10) == [])
    }

    @Test func aWalkIsNeededOnlyForPagesAfterTheEnd() {
        var cache = PageCache.Contents()
        for number: UInt32 in 1...10 { cache.hold(number) }
        #expect(!cache.mayReach(11))
        cache.move(from: 7, to: 262_145)
        #expect(cache.mayReach(11))
        cache.move(from: 262_145, to: 8)
        #expect(!cache.mayReach(11))
        cache.truncated(to: 11)
        cache.hold(12)
        #expect(cache.mayReach(11))
        cache.truncated(to: 11)
        #expect(!cache.mayReach(11))
        #expect(cache.mayReach(10))
        for number: UInt32 in 100..<200 { cache.move(from: 1, to: number) }
        #expect(cache.mayReach(199))
        #expect(cache.moved.count <= PageCache.Contents.movedMax)
        cache.truncated(to: 0)
        #expect(!cache.mayReach(1))
    }
}
