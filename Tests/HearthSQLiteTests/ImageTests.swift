import Glibc
import HearthConcurrency
import HearthEngine
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSQLite

/// Images of files for backups: they end with one commit, whatever is written, copied from the log, closed or deleted then.
struct ImageTests {
    private let folder = TemporaryFolder()
    private let far = MonotonicTime.now.advanced(milliseconds: Patience.milliseconds)

    private func put(_ store: any Store, _ numbers: Range<Int>, _ value: String) throws(Status) {
        try store.write { transaction throws(Status) in
            for number in numbers {
                try transaction.put(
                    .documents, Array("key\(number)".utf8), Array(String(repeating: value, count: 50).utf8))
            }
        }
    }

    /// The values of the keys in a file that was copied from an image.
    private func values(_ image: any StoreImage) throws -> Set<String> {
        let copy = TemporaryFolder()
        try DataFolder.makeFolder(copy.path + "/p")
        let path = copy.path + "/p/copy.sqlite"
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        try #require(descriptor >= 0)
        var offset = 0
        while offset < image.sizeBytes {
            var piece = [UInt8](repeating: 1, count: min(StoreImages.pieceBytes, image.sizeBytes - offset))
            try piece.withUnsafeMutableBytes { try image.read(at: offset, into: $0) }
            #expect(write(descriptor, piece, piece.count) == piece.count)
            offset += piece.count
        }
        close(descriptor)
        // As after a restore: without a log.
        let provider = try SQLiteStoreProvider(path: copy.path)
        defer { provider.close() }
        let store = try provider.open(name("copy"))
        #expect(try store.damage(max: 10) == [])
        return try Self.values(of: try store.snapshot())
    }

    private static func values(of snapshot: any Snapshot) throws -> Set<String> {
        defer { snapshot.close() }
        var found: Set<String> = []
        let cursor = try snapshot.scan(.documents, KeyRange(lower: [], upper: nil), reverse: false, values: true)
        while try cursor.next() {
            found.insert(
                String(decoding: cursor.key, as: UTF8.self) + "="
                    + String(decoding: cursor.value.prefix(1), as: UTF8.self))
        }
        return found
    }

    private func expected(_ numbers: Range<Int>, _ value: String) -> Set<String> {
        Set(numbers.map { "key\($0)=\(value)" })
    }

    @Test func anImageIsTheStateOfItsMomentWhateverIsWrittenAndCopiedFromTheLogThen() throws {
        var options = SQLiteStoreOptions()
        options.bounds = WALBounds(checkpointBytes: 64 << 10)
        options.bounds.patienceMillisecondsMax = 5
        let store = try SQLiteStore(path: folder.path + "/d.sqlite", options: options)
        defer { store.close() }
        // In the file, in the log, and in neither.
        for round in 0..<6 {
            try put(store, 0..<(200 * (round + 1)), "\(round)")
            if round % 2 == 0 {
                store.forceCheckpoint()
                while store.isCheckpointing { sched_yield() }
            }
            let image = try store.image()
            let expected = expected(0..<(200 * (round + 1)), "\(round)")
            try put(store, 0..<2000, "x")
            store.forceCheckpoint()
            try put(store, 0..<300, "y")
            #expect(try values(image) == expected)
            #expect(try Self.values(of: image.contents) == expected)
            image.close()
            try store.write { transaction throws(Status) in
                _ = try transaction.delete(.documents, KeyRange(lower: [], upper: nil), limit: .max)
            }
        }
    }

    @Test func anImageThatHoldsUpTheLogIsTakenAway() throws {
        var options = SQLiteStoreOptions()
        options.bounds = WALBounds(checkpointBytes: 64 << 10)
        options.bounds.walPagesMax = 60
        options.bounds.patienceMillisecondsMax = 1
        let store = try SQLiteStore(path: folder.path + "/d.sqlite", options: options)
        defer { store.close() }
        try put(store, 0..<100, "a")
        let image = try store.image()
        var count = 0
        while store.statistics.revokedSnapshots == 0, count < 2000 {
            try put(store, 0..<100, String(count % 10))
            count += 1
        }
        #expect(throws: Status.self) {
            var piece = [UInt8](repeating: 0, count: 4096)
            try piece.withUnsafeMutableBytes { try image.read(at: 0, into: $0) }
        }
        image.close()
    }

    // MARK: Folders

    private func name(_ database: String) -> DatabaseName { DatabaseName(project: "p", database: database) }

    private func provider() throws(Status) -> SQLiteStoreProvider {
        try SQLiteStoreProvider(path: folder.path + "/data")
    }

    /// All images of a session, by database.
    private func images(_ session: ImageSession) throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        while let (member, image) = try session.next(check: {}) {
            #expect(member.file == "p/\(member.name.database).sqlite")
            found[member.name.database] = try values(image)
            image.close()
        }
        return found
    }

    private func begin(_ provider: SQLiteStoreProvider) throws -> ImageSession {
        let session = try provider.beginImages()
        session.hold()
        session.waitUntilHeld(until: far)
        session.release()
        try session.waitForImages(until: far, check: {})
        return session
    }

    @Test func imagesHaveWhatIsInTheLogAlone() throws {
        let provider = try provider()
        defer { provider.close() }
        let store = try provider.open(name("a"))
        try put(store, 0..<50, "a")
        let session = try begin(provider)
        defer { session.end() }
        try put(store, 0..<80, "b")
        #expect(try images(session) == ["a": expected(0..<50, "a")])
    }

    @Test func writesGoOnWhileAStoreHolds() throws {
        let provider = try provider()
        defer { provider.close() }
        let store = try provider.open(name("a"))
        try put(store, 0..<50, "a")
        let session = try provider.beginImages()
        session.hold()
        session.waitUntilHeld(until: far)
        // The moment is that of the release.
        try put(store, 0..<60, "b")
        session.release()
        try session.waitForImages(until: far, check: {})
        try put(store, 0..<70, "c")
        #expect(try images(session) == ["a": expected(0..<60, "b")])
        session.end()
        store.maintain()
        try put(store, 0..<70, "d")
        let next = try begin(provider)
        #expect(try images(next) == ["a": expected(0..<70, "d")])
        next.end()
    }

    @Test func databasesThatAreClosedHaveTheirStateBeforeWhoeverOpensOrDeletesThemThen() throws {
        var provider = try provider()
        for database in ["a", "b", "c", "open"] { try put(try provider.open(name(database)), 0..<20, "a") }
        provider.close()
        provider = try self.provider()
        defer { provider.close() }
        try put(try provider.open(name("open")), 0..<20, "b")
        let session = try begin(provider)
        defer { session.end() }
        // One is opened and written, one is deleted, and one is made.
        let opened = try provider.open(name("a"))
        try put(opened, 0..<40, "c")
        opened.close()
        try provider.delete(name("b"))
        try put(try provider.open(name("new")), 0..<20, "a")
        let found = try images(session)
        let before = expected(0..<20, "a")
        #expect(found == ["a": before, "b": before, "c": before, "open": expected(0..<20, "b")])
        #expect(try provider.databases().map(\.database).sorted() == ["a", "c", "new", "open"])
    }

    @Test func databasesMayBeOpenedBeforeTheOthersHold() throws {
        var provider = try provider()
        let closed = (0..<30).map { "closed\($0)" }
        for database in closed + ["open"] { try put(try provider.open(name(database)), 0..<20, "a") }
        provider.close()
        provider = try self.provider()
        defer { provider.close() }
        _ = try provider.open(name("open"))
        let session = try provider.beginImages()
        defer { session.end() }
        for database in closed { try put(try provider.open(name(database)), 0..<20, "b") }
        session.hold()
        session.waitUntilHeld(until: far)
        session.release()
        try session.waitForImages(until: far, check: {})
        let found = try images(session)
        #expect(found.count == 31 && found.values.allSatisfy { $0 == expected(0..<20, "a") })
    }

    /// Its image is made later.
    @Test func aDatabaseThatIsClosedBeforeItsImageIsMadeIsNotLeftOut() throws {
        let provider = try provider()
        defer { provider.close() }
        let store = try provider.open(name("a"))
        try put(store, 0..<20, "a")
        let session = try provider.beginImages()
        defer { session.end() }
        store.close()
        session.hold()
        session.waitUntilHeld(until: far)
        session.release()
        try session.waitForImages(until: far, check: {})
        #expect(try images(session) == ["a": expected(0..<20, "a")])
    }

    @Test func oneSessionAtATime() throws {
        let provider = try provider()
        defer { provider.close() }
        _ = try provider.open(name("a"))
        let session = try begin(provider)
        #expect(throws: Status.self) { try provider.beginImages() }
        session.end()
        let other = try begin(provider)
        #expect(try images(other).count == 1)
        other.end()
    }
}
