import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire
import Synchronization

/// Long-running operations. They are kept with the data of their database (`Database.operationNotes`): durable when they
/// begin and when they end. In memory are those that are under way, whose metadata is asked for when it is read.
///
/// A stored operation without an end that is not under way was interrupted by the end of an earlier process: see
/// `InterruptedOperation`. Methods that may wait for the disk must not be called on an event loop.
final class OperationTable: Sendable {
    /// An operation that is under way.
    private struct Running: Sendable {
        let database: Database
        let metadata: @Sendable () -> AnyMessage
        let cancel: (@Sendable () -> Void)?
        /// Whether clients have deleted it; the work goes on.
        var isDeleted = false
        /// Its end, when that could not be stored.
        var end: OperationMessage?
        /// Its end is being stored.
        var isEnding = false
    }

    private struct Waiter: Sendable {
        let number: UInt64
        let name: String
        let deadline: UInt64
        let answer: @Sendable (Result<OperationMessage, Status>) -> Void
    }

    private struct State {
        var running: [String: Running] = [:]
        /// Operations that have deleted their database; the newest last.
        var ofDeleted: [OperationMessage] = []
        var waiters: [Waiter] = []
        var next: UInt64 = 1
        /// When ends that could not be stored are stored again, in monotonic nanoseconds.
        var storesAgain: UInt64 = 0
    }

    private let directory: any DatabaseDirectory
    private let clock: any Clock
    private let startTime: Timestamp
    private let background: AdminService.Background
    private let state = Mutex(State())

    /// - Parameter background: for what waits for the disk.
    init(directory: any DatabaseDirectory, clock: any Clock, background: @escaping AdminService.Background) {
        self.directory = directory
        self.clock = clock
        self.background = background
        startTime = clock.now()
    }

    var now: TimestampMessage { TimestampMessage(clock.now()) }

    // MARK: Beginning and end

    /// An operation that has begun, for whoever ends it.
    struct Handle: Sendable {
        fileprivate let table: OperationTable
        let name: String

        /// Records the end. Only the first call has an effect.
        func end<Response: WireMessage>(_ metadata: some WireMessage, _ result: Result<Response, Status>) {
            var operation = OperationMessage(name: name, metadata: AnyMessage(metadata))
            operation.end(result)
            table.end(operation)
        }
    }

    /// For the end of an operation that has begun.
    func handle(_ operation: OperationMessage) -> Handle { Handle(table: self, name: operation.name) }

    /// Adds an operation.
    /// - Parameters:
    ///   - metadata: its present metadata; called from any thread, as long as it is under way.
    ///   - cancel: stops it, on a client's request.
    ///   - completion: called when it is stored. Fails with RESOURCE_EXHAUSTED when too many are under way.
    @discardableResult
    func begin(
        _ database: Database, metadata: @escaping @Sendable () -> AnyMessage, cancel: (@Sendable () -> Void)? = nil,
        _ completion: @escaping @Sendable (Result<OperationMessage, Status>) -> Void
    ) -> Handle {
        let operation = OperationMessage(name: newName(database.name), metadata: metadata())
        let running = Running(database: database, metadata: metadata, cancel: cancel)
        state.withLock { $0.running[operation.name] = running }
        add(operation, to: database) { [self] result in
            if case .failure = result { _ = state.withLock { $0.running.removeValue(forKey: operation.name) } }
            completion(result)
        }
        return Handle(table: self, name: operation.name)
    }

    /// Adds an operation that is complete when it begins; clients may query it anyway.
    func complete(
        _ database: Database, metadata: some WireMessage, response: some WireMessage,
        _ completion: @escaping @Sendable (Result<OperationMessage, Status>) -> Void
    ) {
        let operation = OperationMessage(
            name: newName(database.name), metadata: AnyMessage(metadata), done: true, response: AnyMessage(response))
        add(operation, to: database, completion)
    }

    /// An operation that has deleted its database, with all other operations of it. It is kept in memory.
    func completeDeletion(
        of database: DatabaseName, metadata: some WireMessage, response: some WireMessage
    ) -> OperationMessage {
        let operation = OperationMessage(
            name: newName(database), metadata: AnyMessage(metadata), done: true, response: AnyMessage(response))
        let prefix = "\(database.string)/operations/"
        state.withLock { state in
            // Their work fails with their database. One of the same name may have been made since.
            for (name, running) in state.running
            where name.utf8.starts(with: prefix.utf8) && running.database.closedStatus != nil {
                state.running[name] = nil
            }
            state.ofDeleted.append(operation)
            if state.ofDeleted.count > Limits.operationsOfDeletedMax { state.ofDeleted.removeFirst() }
        }
        return operation
    }

    /// Ids of later operations are greater, also those of another process.
    private func newName(_ database: DatabaseName) -> String {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        func digits(_ number: UInt64, _ count: Int) -> String {
            let string = String(number, radix: 16)
            return String(repeating: "0", count: max(0, count - string.count)) + string
        }
        let time = UInt64(bitPattern: clock.now().microseconds)
        return "\(database.string)/operations/\(digits(time, 14))-\(digits(number, 6))"
    }

    private func add(
        _ operation: OperationMessage, to database: Database,
        _ completion: @escaping @Sendable (Result<OperationMessage, Status>) -> Void
    ) {
        database.changeNotes(
            { [self] notes throws(Status) in
                if try notes.count(Database.operationNotes, limit: Limits.operationsPerDatabaseMax)
                    >= Limits.operationsPerDatabaseMax
                {
                    let oldest = try notes.first(Database.operationNotes) { name, _ in
                        !isRunning(Self.name(ofNote: name, in: database.name))
                    }
                    guard let oldest else {
                        throw .resourceExhausted("Too many operations are under way in \(database.name).")
                    }
                    try notes.set(oldest, nil)
                }
                try notes.set(Self.note(operation.name), Self.fields(operation))
            }, completion: { completion($0.map { operation }) })
    }

    private func end(_ operation: OperationMessage) {
        let database = state.withLock { state -> Database? in
            guard state.running[operation.name]?.isEnding == false else { return nil }
            state.running[operation.name]?.isEnding = true
            return state.running[operation.name]?.database
        }
        guard let database else { return }
        let note = Self.note(operation.name)
        database.changeNotes(
            { [self] notes throws(Status) in
                let isDeleted = state.withLock { $0.running[operation.name]?.isDeleted ?? true }
                // One with an end that isn't stored yet may have had to go for a newer one.
                if !isDeleted, try notes.note(note) != nil { try notes.set(note, Self.fields(operation)) }
            },
            completion: { [self] result in
                let waiters = state.withLock { state in
                    switch result {
                    case .success: state.running[operation.name] = nil
                    // Clients learn it all the same. It is stored later: without that it counts as interrupted after a restart.
                    case .failure:
                        state.running[operation.name]?.end = operation
                        state.running[operation.name]?.isEnding = false
                    }
                    let waiting = state.waiters.filter { $0.name == operation.name }
                    state.waiters.removeAll { $0.name == operation.name }
                    return waiting
                }
                for waiter in waiters { waiter.answer(.success(operation)) }
            })
    }

    // MARK: Names

    /// `projects/P/databases/D/operations/ID`
    static func database(of name: String) throws(Status) -> DatabaseName {
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count == 6, segments[4] == "operations", !segments[5].isEmpty else {
            throw .invalidArgument(
                "Invalid operation name \"\(name)\": expected projects/{project}/databases/{database}/operations/{id}.")
        }
        return try DatabaseName(parsing: segments[..<4].joined(separator: "/"))
    }

    private static func note(_ name: String) -> String {
        Database.operationNotes + (name.lastIndex(of: "/").map { String(name[name.index(after: $0)...]) } ?? name)
    }

    private static func name(ofNote note: String, in database: DatabaseName) -> String {
        "\(database.string)/operations/\(note.dropFirst(Database.operationNotes.count))"
    }

    private static func fields(_ operation: OperationMessage) -> MapValue {
        MapValue([.init(name: "operation", value: .bytes(operation.protobuf()))])
    }

    private static func operation(_ fields: MapValue) throws(Status) -> OperationMessage {
        guard case .bytes(let bytes)? = fields["operation"] else {
            throw Status(.dataLoss, "A stored operation can't be read.")
        }
        return try OperationMessage(protobuf: bytes)
    }

    private static func notFound(_ name: String) -> Status { .notFound("Operation \"\(name)\" not found.") }

    // MARK: Reading

    private func isRunning(_ name: String) -> Bool {
        state.withLock { $0.running[name].map { $0.end == nil } ?? false }
    }

    /// An operation that is in memory.
    private func held(_ name: String) throws(Status) -> OperationMessage? {
        let (running, deleted) = state.withLock { state in
            (state.running[name], state.ofDeleted.last { $0.name == name })
        }
        guard let running else { return deleted }
        if running.isDeleted { throw Self.notFound(name) }
        return running.end ?? OperationMessage(name: name, metadata: running.metadata())
    }

    /// May wait for the disk.
    /// - Throws: NOT_FOUND.
    func operation(_ name: String) throws(Status) -> OperationMessage {
        let databaseName = try Self.database(of: name)
        if let held = try held(name) { return held }
        guard try directory.exists(databaseName) else { throw Self.notFound(name) }
        let database = try directory.database(databaseName)
        guard let fields = try database.note(Self.note(name)) else { throw Self.notFound(name) }
        return try present(try Self.operation(fields), database)
    }

    /// What a stored operation is now.
    private func present(_ stored: OperationMessage, _ database: Database) throws(Status) -> OperationMessage {
        if stored.done { return stored }
        if let held = try held(stored.name) { return held }
        // It may have ended meanwhile; it is stored before it leaves the memory.
        guard let fields = try database.note(Self.note(stored.name)) else { throw Self.notFound(stored.name) }
        let again = try Self.operation(fields)
        if again.done { return again }
        let interrupted = InterruptedOperation(again, database, endTime: startTime)
        guard let ended = try interrupted.ended() else { return again }
        let note = Self.note(again.name)
        database.changeNotes(
            { notes throws(Status) in
                guard let fields = try notes.note(note), try !Self.operation(fields).done else { return }
                try notes.set(note, Self.fields(ended))
                // Whoever asks finds it out again as long as it can't be stored.
            }, completion: { _ in })
        return ended
    }

    /// Operations of a database, the oldest first. May wait for the disk.
    /// - Parameters:
    ///   - last: the name of one; those behind it are returned.
    ///   - limit: how many; fewer when they are large.
    ///   - isWanted: chooses some.
    func operations(
        of name: DatabaseName, after last: String? = nil, limit: Int = .max,
        where isWanted: (OperationMessage) -> Bool = { _ in true }
    ) throws(Status) -> (operations: [OperationMessage], isMore: Bool) {
        let prefix = "\(name.string)/operations/"
        var deleting = state.withLock { $0.ofDeleted.filter { $0.name.utf8.starts(with: prefix.utf8) } }
            .filter { operation in last.map { UTF8Order.compare($0, operation.name) < 0 } ?? true }
            .filter(isWanted)
        let stored = try stored(name, after: last, limit: limit, isWanted)
        if stored.isMore, let end = stored.operations.last?.name {
            deleting.removeAll { UTF8Order.compare($0.name, end) > 0 }
        }
        let all = (stored.operations + deleting).sorted { UTF8Order.compare($0.name, $1.name) < 0 }
        return (Array(all.prefix(limit)), stored.isMore || all.count > limit)
    }

    /// Those that are kept with the database, some at a time: their metadata may be large.
    private func stored(
        _ name: DatabaseName, after last: String?, limit: Int, _ isWanted: (OperationMessage) -> Bool
    ) throws(Status) -> (operations: [OperationMessage], isMore: Bool) {
        guard try directory.exists(name) else { return ([], false) }
        let database = try directory.database(name)
        var found: [OperationMessage] = []
        var position = last.map(Self.note)
        var left = Limits.adminPageSizeBytesMax
        while true {
            let notes = try database.notes(
                Database.operationNotes, after: position, limit: Limits.adminPageSizeDefault,
                sizeBytesMax: Limits.adminPageSizeBytesMax)
            if notes.isEmpty { return (found, false) }
            for (note, fields) in notes {
                if found.count >= limit || left <= 0 { return (found, true) }
                position = note
                do throws(Status) {
                    let operation = try present(try Self.operation(fields), database)
                    guard isWanted(operation) else { continue }
                    found.append(operation)
                    if case .bytes(let bytes)? = fields["operation"] { left -= bytes.count }
                } catch {
                    // Deleted meanwhile.
                    if error.code != .notFound { throw error }
                }
            }
        }
    }

    /// Answers when an operation has ended, or after a time. May wait for the disk.
    /// - Parameter milliseconds: how long to wait.
    func wait(
        _ name: String, milliseconds: Int, _ answer: @escaping @Sendable (Result<OperationMessage, Status>) -> Void
    ) {
        let nanoseconds = UInt64(min(max(0, milliseconds), Limits.operationWaitSecondsMax * 1000)) * 1_000_000
        let deadline = clock.monotonicNanoseconds() + nanoseconds
        let waiting = state.withLock { state -> UInt64? in
            guard nanoseconds > 0, state.waiters.count < Limits.operationWaitersMax else { return nil }
            state.next += 1
            state.waiters.append(Waiter(number: state.next, name: name, deadline: deadline, answer: answer))
            return state.next
        }
        let present = Result { () throws(Status) in try operation(name) }
        guard let waiting else { return answer(present) }
        // Its end may have answered already.
        if case .success(let operation) = present, !operation.done { return }
        let isOpen = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0.number == waiting }) else { return false }
            state.waiters.remove(at: index)
            return true
        }
        if isOpen { answer(present) }
    }

    /// Answers those who have waited long enough. Must be called some times a second.
    func tick() {
        let now = clock.monotonicNanoseconds()
        storeEnds(now)
        let due = state.withLock { state in
            if state.waiters.isEmpty { return [Waiter]() }
            // Nobody reports the end of what an earlier process began.
            let due = state.waiters.filter { $0.deadline <= now || state.running[$0.name] == nil }
            state.waiters.removeAll { $0.deadline <= now || state.running[$0.name] == nil }
            return due
        }
        for waiter in due {
            background({ waiter.answer(.failure($0)) }) { [self] in
                let present = Result { () throws(Status) in try operation(waiter.name) }
                if case .success(let operation) = present, !operation.done, waiter.deadline > now {
                    return state.withLock { $0.waiters.append(waiter) }
                }
                waiter.answer(present)
            }
        }
    }

    /// Stores the ends that could not be stored, once in a while. Waits for nothing.
    private func storeEnds(_ now: UInt64) {
        let ends = state.withLock { state -> [OperationMessage] in
            if state.running.isEmpty || now < state.storesAgain { return [] }
            state.storesAgain = now + Self.storingNanoseconds
            // Those of a deleted database are not to be stored.
            state.running = state.running.filter { $0.value.end == nil || $0.value.database.closedStatus == nil }
            return state.running.values.compactMap(\.end)
        }
        for operation in ends { end(operation) }
    }

    private static let storingNanoseconds: UInt64 = 1_000_000_000

    // MARK: Changes by clients

    /// Forgets an operation; the work itself continues. May wait for the disk.
    func delete(
        _ name: String, _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) throws(Status) {
        _ = try operation(name)
        let database = state.withLock { state -> Database? in
            state.running[name]?.isDeleted = true
            state.ofDeleted.removeAll { $0.name == name }
            return state.running[name]?.database
        }
        if let database { return remove(name, from: database, completion) }
        let databaseName = try Self.database(of: name)
        guard try directory.exists(databaseName) else { return completion(.success(())) }
        remove(name, from: try directory.database(databaseName), completion)
    }

    private func remove(
        _ name: String, from database: Database, _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let note = Self.note(name)
        database.changeNotes({ notes throws(Status) in try notes.set(note, nil) }, completion: completion)
    }

    /// Asks an operation to end; one that has ended stays as it is. May wait for the disk.
    func cancel(_ name: String) throws(Status) {
        let operation = try operation(name)
        if operation.done { return }
        if let running = state.withLock({ $0.running[name] }) {
            guard let cancel = running.cancel else { throw Self.notCancellable(name) }
            return cancel()
        }
        let database = try directory.database(try Self.database(of: name))
        guard try InterruptedOperation(operation, database, endTime: startTime).cancel() else {
            throw Self.notCancellable(name)
        }
    }

    private static func notCancellable(_ name: String) -> Status {
        .unimplemented("Operation \"\(name)\" can't be cancelled.")
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
