import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire
import Synchronization

/// Long-running operations of all databases, in memory: a restart forgets the operations, not their effects.
final class OperationTable: Sendable {
    private struct State {
        /// Newest last.
        var operations: [DatabaseName: [OperationMessage]] = [:]
        var cancellations: [String: @Sendable () -> Void] = [:]
        var next: UInt64 = 1
    }

    private let clock: any Clock
    private let state = Mutex(State())

    init(clock: any Clock) {
        self.clock = clock
    }

    var now: TimestampMessage { TimestampMessage(clock.now()) }

    /// Adds an operation that has begun.
    /// - Parameter cancel: stops it, on a client's request.
    /// - Throws: RESOURCE_EXHAUSTED when too many are in progress.
    func begin(
        _ database: DatabaseName, metadata: some WireMessage, cancel: (@Sendable () -> Void)? = nil
    ) throws(Status) -> OperationMessage {
        let metadata = AnyMessage(metadata)
        let time = UInt64(bitPattern: clock.now().microseconds)
        let operation = state.withLock { state -> OperationMessage? in
            var list = state.operations[database] ?? []
            if list.count >= Limits.operationsPerDatabaseMax {
                guard let oldest = list.firstIndex(where: \.done) else { return nil }
                list.remove(at: oldest)
            }
            // The time distinguishes the ids of different runs of the program.
            let id = Base64.encodeURLSafe(Array("\(time)-\(state.next)".utf8))
            state.next += 1
            let operation = OperationMessage(name: "\(database.string)/operations/\(id)", metadata: metadata)
            list.append(operation)
            state.operations[database] = list
            state.cancellations[operation.name] = cancel
            return operation
        }
        guard let operation else { throw .resourceExhausted("Too many operations are under way in \(database).") }
        return operation
    }

    /// Records the progress or the end of an operation.
    func update(_ name: String, in database: DatabaseName, _ change: (inout OperationMessage) -> Void) {
        state.withLock { state in
            guard let index = state.operations[database]?.firstIndex(where: { $0.name == name }) else { return }
            change(&state.operations[database]![index])
            if state.operations[database]![index].done { state.cancellations[name] = nil }
        }
    }

    /// An operation that is complete when it begins; clients may query it anyway.
    func completed(
        _ database: DatabaseName, metadata: some WireMessage, response: some WireMessage
    ) throws(Status) -> OperationMessage {
        var operation = try begin(database, metadata: metadata)
        operation.done = true
        operation.response = AnyMessage(response)
        update(operation.name, in: database) { [operation] in $0 = operation }
        return operation
    }

    func operation(_ name: String) throws(Status) -> OperationMessage {
        let database = try Self.database(of: name)
        let found = state.withLock { $0.operations[database]?.first { $0.name == name } }
        guard let found else { throw .notFound("Operation \"\(name)\" not found.") }
        return found
    }

    func operations(of database: DatabaseName) -> [OperationMessage] {
        state.withLock { $0.operations[database] ?? [] }
    }

    /// Forgets an operation; the operation itself continues.
    func delete(_ name: String) throws(Status) {
        let database = try Self.database(of: name)
        _ = try operation(name)
        state.withLock { $0.operations[database]?.removeAll { $0.name == name } }
    }

    func cancel(_ name: String) throws(Status) {
        if try operation(name).done { return }
        guard let cancel = state.withLock({ $0.cancellations[name] }) else {
            throw .unimplemented("Operation \"\(name)\" can't be cancelled.")
        }
        cancel()
    }

    func forget(_ database: DatabaseName) {
        state.withLock { state in
            for operation in state.operations.removeValue(forKey: database) ?? [] {
                state.cancellations[operation.name] = nil
            }
        }
    }

    /// `projects/P/databases/D/operations/ID`
    static func database(of name: String) throws(Status) -> DatabaseName {
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count == 6, segments[4] == "operations" else {
            throw .invalidArgument("Invalid operation name \"\(name)\".")
        }
        return try DatabaseName(parsing: segments[..<4].joined(separator: "/"))
    }
}

extension OperationMessage {
    /// Ends the operation.
    mutating func end<Response: WireMessage>(_ result: Result<Response, Status>) {
        done = true
        switch result {
        case .success(let message): response = AnyMessage(message)
        case .failure(let status):
            error = StatusMessage(code: Int32(status.code.rawValue), message: status.message)
        }
    }
}
