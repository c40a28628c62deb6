@testable import HearthHost
@testable import HearthRealtimeServer
import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthModel
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

/// Who made a write of a session, as events name it: sessions carry sockets and long polling.
@Suite struct SessionAuthorTests {
    final class Authors: TreeRecorder {
        let all = Mutex<[(path: String, author: EventAuthor)]>([])

        func record(
            _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
            in transaction: any StoreTransaction
        ) throws(Status) {
            let author = EventAuthor(stored: author())
            all.withLock { all in for change in changes { all.append((change.path.string, author)) } }
        }

        func ended(isDurable: Bool) {}

        func author(of path: String) -> EventAuthor? { all.withLock { $0.last { $0.path == path }?.author } }
    }

    private static let ann = RealtimeIdentity.client(
        auth: .object([
            ("uid", .string("ann")), ("provider", .string("password")),
            ("token", .object([("sub", .string("ann")), ("level", .integer(3))])),
        ]), end: nil)
    private static let author = EventAuthor.user(
        id: "ann", provider: "password", claims: "{\"sub\":\"ann\",\"level\":3}")

    @Test func writesAreThoseOfTheClientOfTheMoment() throws {
        let site = try Site()
        defer { site.close() }
        let authors = Authors()
        site.namespace.database.setRecorder(authors)
        let client = site.open()
        client.request(1, "p", #"{"p":"a","d":1}"#)
        _ = client.take(2)
        site.on { [session = client.session] in session.change(to: Self.ann) }
        client.request(2, "p", #"{"p":"b","d":1}"#)
        client.request(3, "m", #"{"p":"c","d":{"x":1}}"#)
        _ = client.take(2)
        client.request(4, "gauth", #"{"cred":"owner"}"#)
        client.request(5, "p", #"{"p":"d","d":1}"#)
        _ = client.take(2)
        client.end()
        #expect(authors.author(of: "a") == .nobody)
        #expect(authors.author(of: "b") == Self.author && authors.author(of: "c/x") == Self.author)
        #expect(authors.author(of: "d") == .administrator(name: ""))
    }

    /// Also those that a crash has left.
    @Test func disconnectWritesAreThoseOfTheirClient() throws {
        let site = try Site()
        defer { site.close() }
        let authors = Authors()
        site.namespace.database.setRecorder(authors)
        let client = site.open()
        site.on { [session = client.session] in session.change(to: Self.ann) }
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        let other = site.open(connection: 2)
        site.on { [session = other.session] in session.change(to: Self.ann) }
        other.request(1, "o", #"{"p":"crashed","d":1}"#)
        _ = other.take(2)
        client.end()
        #expect(awaited { authors.author(of: "left") } == Self.author)
        // As after a crash: the session is not ended, and its namespace is opened again.
        try site.namespace.runAbandoned(site.service)
        #expect(awaited { authors.author(of: "crashed") } == Self.author)
    }

    /// A recorder that the preparation sets sees what a crash has left.
    @Test func namespacesArePreparedBeforeAnythingIsWritten() throws {
        let stores = MemoryStoreProvider()
        let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1, jobsMax: 1000)
        defer { pool.stop() }
        let authors = Authors()
        let prepared = Mutex<[String]>([])
        func service(fails: Bool = false) throws -> RealtimeService {
            try RealtimeService(
                RealtimeService.Configuration(), provider: stores,
                authenticator: Authenticator(isEmulator: true, project: "p", IdentityConfiguration()), pool: pool
            ) { namespace throws(Status) in
                if fails { throw .unavailable("Not now.") }
                prepared.withLock { $0.append(namespace.name) }
                namespace.database.setRecorder(authors)
            }
        }
        let first = try service()
        let namespace = try first.namespace("n")
        let written = Mutex(false)
        let identity = DisconnectRecord.string(of: Self.ann)
        namespace.database.submit(
            TreeWrite(
                changes: [], nowMilliseconds: 0,
                journal: [
                    JournalChange(session: "s", entry: "/left", record: Array("1".utf8)),
                    JournalChange(session: "s", entry: DisconnectRecord.identityEntry, record: identity),
                ])
        ) { _ in written.withLock { $0 = true } }
        _ = awaited { written.withLock { $0 } ? true : nil }
        #expect(authors.all.withLock { $0.isEmpty })
        let failing = try service(fails: true)
        #expect(throws: Status.self) { try failing.namespace("other") }
        failing.close()
        #expect(prepared.withLock { $0 } == ["n"])
        first.close()
        let second = try service()
        _ = try second.namespace("n")
        #expect(authors.author(of: "left") == Self.author)
        #expect(prepared.withLock { $0 } == ["n", "n"])
        second.close()
    }
}
