import Glibc
import HearthConcurrency
import HearthHost
import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthToolSupport
import HearthWire

/// Calls of Firestore's API on a running server, over one HTTP/2 connection, which is opened again when it is lost.
/// Used on one thread.
final class FirestoreConnection {
    let database: DatabaseName
    let server: ServerConnection
    private let metadata: [HTTPHeader]

    /// The default database's address is where clients of the emulator look for it.
    private static let variable = "FIRESTORE_EMULATOR_HOST"

    static let options =
        ServerConnection.options(defaultAddress: variable) + [
            Option("project", "ID", "The project. Default: GOOGLE_CLOUD_PROJECT, else \(defaultProject)."),
            Option("database", "ID", "The database. Default: \(DatabaseName.defaultDatabase)."),
            Option("quiet", nil, "Print errors only."),
        ]
    private static let defaultProject = "demo-hearth"

    /// - Throws: as for `ServerConnection`.
    /// - Parameter disablesTriggers: commits make no events for triggers: see `checkThatTriggersAreDisabled`.
    init(_ parsed: ParsedOptions, disablesTriggers: Bool = false) throws(ToolFailure) {
        database = try Self.database(parsed)
        server = try ServerConnection(parsed, defaultAddress: Self.variable)
        let header = disablesTriggers ? [HTTPHeader(TriggersHeader.name, "true")] : []
        metadata = server.headers + [HTTPHeader("google-cloud-resource-prefix", database.string)] + header
    }

    static func database(_ parsed: ParsedOptions) throws(ToolFailure) -> DatabaseName {
        let project = parsed.string("project") ?? Environment.all["GOOGLE_CLOUD_PROJECT"] ?? defaultProject
        let name = DatabaseName(
            project: project, database: parsed.string("database") ?? DatabaseName.defaultDatabase)
        do throws(Status) {
            return try DatabaseName(parsing: name.string)
        } catch {
            throw .usage(error.message)
        }
    }

    func close() { server.close() }

    // MARK: Calls

    private func request(_ client: GRPCClient, _ method: String) -> GRPCClient.Request {
        client.request(path: "/google.firestore.v1.Firestore/\(method)", metadata: metadata)
    }

    /// A call with one response message. `done` runs on the loop's thread.
    func unary(_ method: String, _ message: [UInt8], _ done: @escaping @Sendable (Result<[UInt8], Status>) -> Void) {
        let client = GRPCClient(server.client)
        let request = request(client, method)
        server.loop.execute { client.unary(request, message: message, done) }
    }

    /// A call with any number of response messages; returns at its end.
    /// - Parameter onMessage: receives them on the loop's thread, which reads no more meanwhile. Its error ends
    ///   the call.
    func stream(
        _ method: String, _ message: [UInt8], onMessage: @escaping @Sendable ([UInt8]) throws(Status) -> Void
    ) throws(Status) {
        let outcome = Awaited<Void>()
        begin(method, message, onMessage: onMessage) { outcome.set($0.code == .ok ? .success(()) : .failure($0)) }
        try outcome.wait()
        server.noteAnswer()
    }

    /// The same, which returns at once. `done` runs on the loop's thread.
    func begin(
        _ method: String, _ message: [UInt8], onMessage: @escaping @Sendable ([UInt8]) throws(Status) -> Void,
        _ done: @escaping @Sendable (Status) -> Void
    ) {
        let client = GRPCClient(server.client)
        let request = request(client, method)
        server.loop.execute {
            let call = client.open(request)
            call.onMessage = { bytes in
                do throws(Status) {
                    try onMessage(bytes)
                } catch {
                    // No callback follows.
                    call.cancel()
                    done(error)
                }
            }
            call.onFinish = { status, _ in done(status) }
            call.send(message)
            call.halfClose()
        }
    }

    /// Fails for a server that doesn't know the header, which would be ignored: an empty commit shows it.
    func checkThatTriggersAreDisabled() throws(ToolFailure) {
        let outcome = Awaited<Bool>()
        let client = GRPCClient(server.client)
        let request = request(client, "Commit")
        let message = ImportBatch(database).message
        server.loop.execute {
            let call = client.open(request)
            call.onFinish = { status, trailers in
                guard status.code == .ok else { return outcome.set(.failure(status)) }
                outcome.set(.success(trailers.contains { $0.name == TriggersHeader.name && $0.value == "true" }))
            }
            call.send(message)
            call.halfClose()
        }
        let isKnown: Bool
        do throws(Status) {
            isKnown = try outcome.wait()
        } catch {
            try server.noteFailure(error, isRepeated: false)
            throw error.code == .unavailable ? ToolFailure(.unavailable, error.message) : failure(error)
        }
        server.noteAnswer()
        if !isKnown {
            throw ToolFailure(
                .failed, "The server doesn't know --no-triggers: only Hearth does. Nothing was imported.")
        }
    }

    // MARK: Faults

    /// Waits before a call is repeated, and connects again when the connection is lost.
    /// - Throws: 1 when the server refuses the call, 69 when it has failed for 30 seconds, or speaks another
    ///   protocol.
    func recover(from status: Status, _ faults: inout Faults) throws(ToolFailure) {
        try server.noteFailure(status, isRepeated: true)
        try faults.wait(after: status, hint: server.hint(Self.httpStatus(status)))
        do throws(Status) {
            try server.reopen()
        } catch {
            // The next call fails for the same reason.
            faults.last = error
        }
    }

    func failure(_ status: Status) -> ToolFailure {
        ToolFailure(.failed, "The server refuses: \(status.message)\(server.hint(Self.httpStatus(status)))")
    }

    private static func httpStatus(_ status: Status) -> Int { status.code.httpStatus }

    /// Whether a call may succeed when it is repeated.
    static func isPassing(_ status: Status) -> Bool {
        switch status.code {
        case .unavailable, .aborted, .deadlineExceeded, .resourceExhausted, .internal, .unknown, .cancelled: true
        default: false
        }
    }

    /// The failures of a call since it has last made progress.
    struct Faults {
        fileprivate var last: Status?
        private var since: MonotonicTime?
        private var count = 0
        private static let secondsMax = 30

        mutating func clear() { self = Faults() }

        fileprivate mutating func wait(after status: Status, hint: String) throws(ToolFailure) {
            guard FirestoreConnection.isPassing(status) else {
                throw ToolFailure(.failed, "The server refuses: \(status.message)\(hint)")
            }
            let now = MonotonicTime.now
            let since = since ?? now
            self.since = since
            if since.advanced(milliseconds: 1000 * Self.secondsMax) <= now {
                let reason = last ?? status
                throw ToolFailure(
                    reason.code == .resourceExhausted ? .failed : .unavailable,
                    "The server has failed for \(Self.secondsMax) seconds: \(reason.message)")
            }
            last = status
            usleep(UInt32(min(2000, 50 << min(count, 6))) * 1000)
            count += 1
        }
    }
}
