@testable import HearthDocuments
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthWire
import Testing

@testable import HearthFirestoreServer

/// The admin service over databases in memory.
final class AdminHarness {
    let registry: DatabaseRegistry
    let transfers: TransferService
    let admin: AdminService
    let root = "projects/p/databases/(default)"

    /// - Parameter exportFolder: for exports and imports; nil for none.
    init(
        provider: any StoreProvider = MemoryStoreProvider(), exportFolder: String? = nil,
        clock: any Clock = SystemClock()
    ) throws {
        registry = DatabaseRegistry(provider: provider, clock: clock)
        transfers = TransferService(longReads: LongReads(), clock: clock)
        let root = try exportFolder.map { path throws(Status) in try ExportRoot(path) }
        admin = AdminService(directory: registry, transfers: transfers, exportFolder: root, clock: clock) { _, body in
            Task.detached { body() }
        }
    }

    convenience init() {
        do { try self.init(exportFolder: nil) } catch { fatalError("without a folder nothing can fail: \(error)") }
    }

    deinit {
        transfers.stop()
        registry.close()
    }

    var database: Database {
        get throws { try registry.database(DatabaseName(project: "p")) }
    }

    /// The JSON response to a REST request; nil when no route matches.
    func call(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = []
    ) async throws -> [UInt8]? {
        var segments = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        var verb = ""
        if let last = segments.last, let colon = last.lastIndex(of: ":") {
            verb = String(last[last.index(after: colon)...])
            segments[segments.count - 1] = String(last[..<colon])
        }
        let request = AdminService.RESTRequest(
            method: method, segments: segments, verb: verb, parameters: query, body: Array(body.utf8))
        return try await withCheckedContinuation { continuation in
            if !admin.serve(request, { _, _ in }, { continuation.resume(returning: $0.map(Optional.some)) }) {
                continuation.resume(returning: .success(nil))
            }
        }.get()
    }

    func call<Answer: WireMessage>(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = [],
        as _: Answer.Type
    ) async throws -> Answer {
        try Answer(json: try #require(try await call(method, path, body, query: query)))
    }

    /// The status of a request that fails.
    func refusal(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = []
    ) async throws -> Status? {
        do {
            _ = try await call(method, path, body, query: query)
            return nil
        } catch let status as Status {
            return status
        }
    }

    /// The end of an operation.
    func end(of operation: OperationMessage) async throws -> OperationMessage {
        while true {
            let present = try await call("POST", operation.name + ":wait", "{}", as: OperationMessage.self)
            if present.done { return present }
        }
    }
}
