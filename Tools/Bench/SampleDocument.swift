import HearthToolSupport
import Glibc
import HearthModel

/// A document of the `get` workload in Hearth's response. Peers without documents send it, so that they transfer as
/// many bytes.
struct SampleDocument {
    /// The answer of GetDocument.
    var message: [UInt8]
    /// The answer of a GET over REST.
    var string: [UInt8]

    /// Requests it from a temporary server in memory.
    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        let server = try FirestoreInstance(settings, HearthProcess(isInMemory: true, housekeeping))
        defer { server.stop() }
        try server.fill(.work, documents: 1)
        var random = SeededRandom(seed: settings.seed)
        let request = server.requests.get(FirestoreInstance.Collection.work.name, documents: 1, &random)
        guard let message = try server.call("GetDocument", request).first,
            let answer = Loopback.request(port: server.server.port, "GET", server.requests.path("work", 0)),
            let body = answer.split(separator: "\r\n\r\n", maxSplits: 1).last
        else { throw ToolFailure(.software, "The server has no document to show.") }
        self.message = message
        string = Array(body.utf8)
    }
}
