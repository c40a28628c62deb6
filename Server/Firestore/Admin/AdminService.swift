import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire
import Synchronization

/// google.firestore.admin.v1.FirestoreAdmin, with google.longrunning.Operations and the locations: the implementation
/// of each method, for REST and gRPC.
///
/// Methods take a request message and respond through a closure, from any thread. Where Google's service uses
/// long-running operations, so does Hearth; most end within milliseconds. Source:
/// google/firestore/admin/v1/firestore_admin.proto.
package struct AdminService: Sendable {
    package typealias Answer<Message> = @Sendable (Result<Message, Status>) -> Void

    /// Runs a job, or reports why it never will.
    package typealias Background =
        @Sendable (
            _ refused: @escaping @Sendable (Status) -> Void, _ job: @escaping @Sendable () -> Void
        ) -> Void

    let directory: any DatabaseDirectory
    let clock: any Clock
    let operations: OperationTable
    let startTime: Timestamp
    /// Runs work that waits for the disk, outside the event loops.
    let background: Background
    let transfers: TransferService
    /// Where exports and imports are; nil when the operator allows none.
    let exportFolder: ExportRoot?

    package init(
        directory: any DatabaseDirectory, transfers: TransferService, exportFolder: ExportRoot? = nil,
        clock: any Clock = SystemClock(), background: @escaping Background
    ) {
        self.directory = directory
        self.transfers = transfers
        self.exportFolder = exportFolder
        self.clock = clock
        self.background = background
        operations = OperationTable(directory: directory, clock: clock, background: background)
        startTime = clock.now()
    }

    /// Answers who has waited for an operation long enough. Must be called some times a second.
    package func tick() { operations.tick() }

    /// Runs a method's body outside the loop; an error becomes the response.
    func inBackground<Message>(
        _ answer: @escaping Answer<Message>, _ body: @escaping @Sendable () throws(Status) -> Message
    ) {
        background({ answer(.failure($0)) }) {
            do throws(Status) {
                answer(.success(try body()))
            } catch {
                answer(.failure(error))
            }
        }
    }

    /// Runs a body that responds itself, outside the loop; if it throws, the error becomes the response.
    func inBackground<Message>(
        of answer: @escaping Answer<Message>, _ body: @escaping @Sendable () throws(Status) -> Void
    ) {
        background({ answer(.failure($0)) }) {
            do throws(Status) { try body() } catch { answer(.failure(error)) }
        }
    }

    /// The items of one page of a list, and the token of the next page.
    /// - Parameters:
    ///   - key: the sort key of the items.
    ///   - list: identifies the list; a token of another list fails with INVALID_ARGUMENT.
    static func page<Item>(
        _ items: [Item], key: (Item) -> String, size: Int32, token: String, list: [String]
    ) throws(Status) -> (items: [Item], next: String) {
        if size < 0 { throw .invalidArgument("The page size must not be negative.") }
        let fingerprint = PageToken.fingerprint(list)
        var rest = items.sorted { UTF8Order.compare(key($0), key($1)) < 0 }
        if let start = try PageToken(token, fingerprint: fingerprint) {
            let position = String(decoding: start.position, as: UTF8.self)
            rest.removeAll { UTF8Order.compare(key($0), position) <= 0 }
        }
        let count = min(size == 0 ? Limits.adminPageSizeDefault : Int(size), Limits.adminPageSizeMax)
        let page = Array(rest.prefix(count))
        guard rest.count > count, let last = page.last else { return (page, "") }
        let next = PageToken(readTime: Timestamp(microseconds: 0), position: Array(key(last).utf8))
        return (page, next.string(fingerprint: fingerprint))
    }
}
