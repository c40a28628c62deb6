import HearthDocuments
import HearthFirestoreServer
import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine

/// Entry points for fuzzing the streams, with clients that check their guarantees. A violated invariant traps.
package enum StreamFuzzing {
    static let loop: EventLoop = {
        do {
            let loop = try EventLoop()
            try loop.start()
            return loop
        } catch { preconditionFailure("no event loop: \(error)") }
    }()

    private static let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)

    /// Lines: a `ListenRequest` as JSON, in which `$T` is replaced by the newest resume token; `+PATH N` and `-PATH`
    /// for commits, `!` and `~` for a client that stops and resumes reading, `f` for unreadable input, `z` for
    /// clearing.
    package static func fuzzListen(_ bytes: [UInt8]) {
        run(bytes, stream: { ListenFuzzClient(loop: loop, $0, $1) }) { client, database in
            client.check(at: database)
        }
    }

    /// Lines: a `WriteRequest` as JSON, in which `$T` is replaced by the newest stream token; `h` for the end of the
    /// requests, `f` for unreadable input.
    package static func fuzzWrite(_ bytes: [UInt8]) {
        run(bytes, stream: { WriteFuzzClient(loop: loop, $0, $1) }) { client, _ in client.check() }
    }

    private static func run<Client: StreamFuzzClient>(
        _ bytes: [UInt8], stream: (FirestoreService, Database) -> Client, check: (Client, Database) -> Void
    ) {
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let service = FirestoreService(
            registry: registry, pool: pool, options: FirestoreService.Options(),
            authenticator: Authenticator(isEmulator: true, project: "p"), access: AccessControl(isEmulator: true))
        let database: Database
        do throws(Status) {
            database = try registry.database(DatabaseName(project: "p", database: "(default)"))
        } catch { preconditionFailure("no database: \(error)") }
        let client = stream(service, database)
        for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 60) { client.take(Array(line)) }
        client.settle()
        check(client, database)
        client.leave()
        registry.close()
    }

    /// Lines of a WebChannel session: `P` and a form, the messages of a client; `A` and a number, an acknowledgement;
    /// `G` and `L`, a back channel that streams or polls; `D`, it breaks; `S` and a string, a message of the server;
    /// `W`, the client reads; `C`, the end.
    package static func fuzzWebChannel(_ bytes: [UInt8]) {
        var model = WebChannelFuzzModel()
        for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 200) { model.take(line[...]) }
        model.check()
    }
}
