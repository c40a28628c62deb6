import HearthModel
import HearthTestSupport
import HearthWire

@testable import HearthEngine
@testable import HearthDocuments

/// Shared by tests of transactions: a database with the documents c/a (n = 1) and c/b (n = 2), and short forms.
protocol TransactionBench {
    var clock: StoppedClock { get }
    var database: Database { get }
}

extension TransactionBench {
    static func open(_ clock: StoppedClock) throws(Status) -> Database {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: clock)
        try database.commit([.set("c/a", map(("n", .integer(1)))), .set("c/b", map(("n", .integer(2))))])
        return database
    }

    func set(_ path: String, _ number: Int64) -> Write { .set(path, map(("n", .integer(number)))) }

    func read(_ path: String, in transaction: [UInt8]) -> PendingRead {
        database.beginRead(.transaction(transaction), [.document(resource(path).path)])
    }

    func number(_ path: String, _ view: ReadView) throws -> Int64? {
        guard let document = try view.document(resource(path).path),
            case .integer(let number)? = try FieldsCodec.decode(document.fields)["n"]
        else { return nil }
        return number
    }

    func number(_ path: String, in transaction: [UInt8]? = nil) throws -> Int64? {
        try number(path, transaction.map { try read(path, in: $0).wait() } ?? database.view())
    }

    func pass(seconds: Double) {
        clock.advance(seconds: seconds)
        database.tick()
    }

    static var contention: Status {
        .aborted(
            "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt to access the "
                + "same data, requiring Firestore to abort at least one in order to enforce serializability.")
    }
    static var timeout: Status { .aborted("Transaction lock timeout.") }
    static var expired: Status { .aborted("The referenced transaction has expired or is no longer valid.") }
    static var invalid: Status { .invalidArgument("Invalid transaction.") }

    func commitStatus(_ writes: [Write], in transaction: [UInt8]? = nil) -> Status? {
        statusOf { () throws(Status) in try database.commit(writes, in: transaction) }
    }

    func query(_ from: Int64, _ to: Int64, group: Bool = false) throws(Status) -> Database.ReadTarget {
        .query(
            try NormalizedQuery(
                Query(
                    parent: resource(""), scope: group ? .collectionGroup("c") : .collection("c"),
                    filter: .and([
                        .field(FieldPath("n"), .greaterThanOrEqual, .integer(from)),
                        .field(FieldPath("n"), .lessThan, .integer(to)),
                    ]))))
    }
}
