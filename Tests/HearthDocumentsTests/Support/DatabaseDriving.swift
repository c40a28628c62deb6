import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization

@testable import HearthDocuments

/// Carries a view to the thread that waits for it.
private final class GrantBox: @unchecked Sendable {
    let grant: Database.ViewGrant
    init(_ grant: Database.ViewGrant) { self.grant = grant }
}

/// A read that may have to wait for its lock.
struct PendingRead {
    fileprivate let promise = Promise<Result<GrantBox, Status>>()

    var isOver: Bool { promise.isGiven }
    func wait() throws(Status) -> ReadView { try promise.wait().get().grant.view }
    func waitForTransaction() throws(Status) -> [UInt8] { try promise.wait().get().grant.newTransaction ?? [] }
}

let testDatabaseName = DatabaseName(project: "p")

/// A document's name in the tests' database, from `c/d`.
func resource(_ path: String) -> ResourceName {
    ResourceName(database: testDatabaseName, path: ResourcePath(path.split(separator: "/").map(String.init)))
}

func map(_ fields: (String, Value)...) -> MapValue {
    MapValue(fields.map { MapValue.Field(name: $0.0, value: $0.1) })
}

extension Write {
    static func set(
        _ path: String, _ fields: MapValue, _ precondition: Precondition = .none, transforms: [FieldTransform] = []
    ) -> Write {
        Write(
            document: resource(path), operation: .update(fields: fields, mask: nil), transforms: transforms,
            precondition: precondition)
    }

    static func merge(
        _ path: String, _ fields: MapValue, _ mask: [String], _ precondition: Precondition = .none,
        transforms: [FieldTransform] = []
    ) throws -> Write {
        Write(
            document: resource(path),
            operation: .update(fields: fields, mask: try mask.map { try FieldPath(parsing: $0) }),
            transforms: transforms, precondition: precondition)
    }

    static func delete(_ path: String, _ precondition: Precondition = .none) -> Write {
        Write(document: resource(path), operation: .delete, precondition: precondition)
    }

    static func verify(_ path: String, _ precondition: Precondition) -> Write {
        Write(document: resource(path), operation: .verify, precondition: precondition)
    }
}

extension Database {
    /// Submits a commit without waiting for it.
    func submit(_ writes: [Write], in transaction: [UInt8]? = nil) -> Promise<Result<CommitOutcome, Status>> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        commit(writes, transaction: transaction) { promise.give($0) }
        return promise
    }

    @discardableResult
    func commit(_ writes: [Write], in transaction: [UInt8]? = nil) throws(Status) -> CommitOutcome {
        try submit(writes, in: transaction).wait().get()
    }

    /// Begins a read without waiting for its lock.
    func beginRead(_ consistency: Consistency, _ targets: [ReadTarget] = []) -> PendingRead {
        let pending = PendingRead()
        let promise = pending.promise
        read(consistency, targets) { result in promise.give(result.map(GrantBox.init)) }
        return pending
    }

    func view(_ consistency: Consistency, _ targets: [ReadTarget] = []) throws(Status) -> ReadView {
        try beginRead(consistency, targets).wait()
    }

    func beginTransaction(retry: [UInt8]? = nil) throws(Status) -> [UInt8] { try begin(.readWrite(retry: retry)) }

    /// The fields of a document at present, or as a transaction reads them.
    func fields(_ path: String, in transaction: [UInt8]? = nil) throws(Status) -> MapValue? {
        let consistency = transaction.map { Consistency.transaction($0) } ?? .strong
        let view = try view(consistency, [.document(resource(path).path)])
        return try view.document(resource(path).path).map { document throws(Status) in
            try FieldsCodec.decode(document.fields)
        }
    }

    func setCatalog(_ definitions: [IndexDefinition], _ overrides: [FieldOverride] = []) throws(Status) {
        let promise = Promise<Result<Void, Status>>()
        setCatalog(definitions: definitions, overrides: overrides) { promise.give($0) }
        try promise.wait().get()
    }

    func clear() throws(Status) {
        let promise = Promise<Result<Void, Status>>()
        clear { promise.give($0) }
        try promise.wait().get()
    }

    /// Deletes all old history.
    func collectAllGarbage(recordsMax: Int = 2000) throws(Status) {
        while true {
            let promise = Promise<Result<Bool, Status>>()
            collectGarbage(recordsMax: recordsMax) { promise.give($0) }
            if try !promise.wait().get() { return }
        }
    }

    /// Waits until the writer has processed everything that was queued before.
    func drain() {
        _ = submit([]).wait()
    }
}

/// Runs queries of a view to their end.
extension ReadView {
    func results(_ query: Query) throws(Status) -> [QueryResult] {
        try results(try NormalizedQuery(query))
    }

    func results(_ query: NormalizedQuery) throws(Status) -> [QueryResult] {
        let execution = try QueryExecution(query, view: self)
        var results: [QueryResult] = []
        while let result = try execution.next() { results.append(result) }
        return results
    }

    func names(_ query: Query) throws(Status) -> [String] {
        try results(query).map { DocumentKey.decode($0.key)?.string ?? "?" }
    }
}

/// Checks that `body` throws exactly this status.
func statusOf(_ body: () throws(Status) -> Void) -> Status? {
    do throws(Status) {
        try body()
        return nil
    } catch {
        return error
    }
}
