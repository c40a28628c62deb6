import HearthHost
import HearthModel
import HearthDocuments
import HearthWire
import Synchronization

/// Commits and transactions.
extension FirestoreService {
    func beginTransaction(_ request: BeginTransactionRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            guard
                let database = try self.database(
                    try DatabaseName(parsing: request.database), for: call,
                    again: { self.beginTransaction(request, call) })
            else { return }
            let mode = try access.permitted(try Self.mode(request.options), call.identity, database.name)
            let id = try database.begin(mode, requester: call.requester)
            call.respond(BeginTransactionResponse(transaction: id))
        }
    }

    func rollback(_ request: RollbackRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            guard
                let database = try self.database(
                    try DatabaseName(parsing: request.database), for: call, again: { self.rollback(request, call) })
            else { return }
            try database.rollback(request.transaction)
            call.respond(EmptyMessage())
        }
    }

    /// - Parameter sizeBytes: the size of the encoded request.
    func commit(_ request: CommitRequest, sizeBytes: Int, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let name = try DatabaseName(parsing: request.database)
            try Self.checkSize(sizeBytes)
            guard
                let database = try self.database(
                    name, for: call, again: { self.commit(request, sizeBytes: sizeBytes, call) })
            else { return }
            var writes: [Write] = []
            writes.reserveCapacity(request.writes.count)
            do throws(Status) {
                for message in request.writes { writes.append(try message.write(database: name)) }
            } catch {
                // A commit ends its transaction whatever its result.
                if !request.transaction.isEmpty { try database.rollback(request.transaction) }
                throw error
            }
            let transaction = request.transaction.isEmpty ? nil : request.transaction
            let commitGuard: (any CommitGuard)?
            let once: OnceID?
            let disablesTriggers: Bool
            do throws(Status) {
                commitGuard = try access.commitGuard(call.identity, name)
                once = try OnceHeader.id(of: call)
                if once != nil {
                    try access.requireAdministrator(
                        call.identity, of: .database(name), .writes,
                        "Commits with '\(OnceHeader.name)' require admin authentication.")
                }
                disablesTriggers = try TriggersHeader.isSet(on: call)
                if disablesTriggers {
                    try access.requireAdministrator(
                        call.identity, of: .database(name), .writes,
                        "Commits with '\(TriggersHeader.name)' require admin authentication.")
                }
            } catch {
                if let transaction { try database.rollback(transaction) }
                throw error
            }
            database.commit(
                writes, transaction: transaction, sizeBytes: sizeBytes, guard: commitGuard,
                requester: call.requester, once: once, makesEvents: !disablesTriggers,
                author: call.identity.asAuthor, isWanted: call.cancellation.isWanted
            ) { result in
                call.onLoop { Self.respond(call, result) }
            }
        }
    }

    private static func respond(_ call: any ServiceCall, _ result: Result<CommitOutcome, Status>) {
        switch result {
        case .failure(let status): call.finish(status)
        case .success(let outcome):
            switch call.format {
            case .protobuf:
                var writer = ProtobufWriter()
                writer.commitResponse(outcome.results, commitTime: outcome.commitTime)
                call.respond(writer.bytes)
            case .json:
                call.respond(
                    CommitResponse(
                        writeResults: outcome.results.map(Self.message),
                        commitTime: TimestampMessage(outcome.commitTime)))
            }
        }
    }

    static func message(_ result: WriteResult) -> WriteResultMessage {
        WriteResultMessage(
            updateTime: result.updateTime.map { TimestampMessage($0) }, transformResults: result.transformResults)
    }

    static func checkSize(_ sizeBytes: Int) throws(Status) {
        if sizeBytes > Limits.requestSizeBytesMax {
            throw .invalidArgument("Request payload size exceeds the limit: \(Limits.requestSizeBytesMax) bytes.")
        }
    }

    /// Each write is its own commit; they share the writer's next group.
    func batchWrite(_ request: BatchWriteRequest, sizeBytes: Int, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let name = try DatabaseName(parsing: request.database)
            try access.requireAdministrator(
                call.identity, of: .database(name), .writes, "Batch writes require admin authentication.")
            try OnceHeader.refuse(on: call, "BatchWrite applies each write separately.")
            try Self.checkSize(sizeBytes)
            guard
                let database = try self.database(
                    name, for: call, again: { self.batchWrite(request, sizeBytes: sizeBytes, call) })
            else { return }
            var writes: [Write] = []
            var seen: Set<ResourcePath> = []
            for message in request.writes {
                let write = try message.write(database: name)
                if !seen.insert(write.document.path).inserted {
                    throw .invalidArgument(
                        "the same document cannot be written more than once in a single request: \(write.document)")
                }
                writes.append(write)
            }
            let gathering = BatchGathering(count: writes.count) { results in
                call.onLoop { call.respond(Self.response(results)) }
            }
            if writes.isEmpty { call.respond(BatchWriteResponse()) }
            for (index, write) in writes.enumerated() {
                database.commit(
                    [write], sizeBytes: sizeBytes / max(1, writes.count), requester: call.requester,
                    author: call.identity.asAuthor, isWanted: call.cancellation.isWanted
                ) { gathering.set($0, at: index) }
            }
        }
    }

    private static func response(_ results: [Result<CommitOutcome, Status>]) -> BatchWriteResponse {
        var response = BatchWriteResponse()
        for result in results {
            switch result {
            case .success(let outcome):
                response.writeResults.append(outcome.results.first.map(message) ?? WriteResultMessage())
                response.status.append(StatusMessage())
            case .failure(let status):
                response.writeResults.append(WriteResultMessage())
                response.status.append(StatusMessage(code: Int32(status.code.rawValue), message: status.message))
            }
        }
        return response
    }
}

/// Waits for the results of several commits.
private final class BatchGathering: Sendable {
    private struct State {
        var results: [Result<CommitOutcome, Status>?]
        var open: Int
    }

    private let state: Mutex<State>
    private let done: @Sendable ([Result<CommitOutcome, Status>]) -> Void

    init(count: Int, done: @escaping @Sendable ([Result<CommitOutcome, Status>]) -> Void) {
        state = Mutex(State(results: Array(repeating: nil, count: count), open: count))
        self.done = done
    }

    func set(_ result: Result<CommitOutcome, Status>, at index: Int) {
        let all = state.withLock { state -> [Result<CommitOutcome, Status>]? in
            state.results[index] = result
            state.open -= 1
            return state.open == 0 ? state.results.compactMap { $0 } : nil
        }
        if let all { done(all) }
    }
}
