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
        let start = try pageStart(size, token, list)
        var rest = items.sorted { UTF8Order.compare(key($0), key($1)) < 0 }
        if let position = start.position { rest.removeAll { UTF8Order.compare(key($0), position) <= 0 } }
        let page = Array(rest.prefix(start.count))
        guard rest.count > start.count, let last = page.last else { return (page, "") }
        return (page, start.token(after: key(last)))
    }

    /// Where a page of a list begins.
    struct PageStart {
        fileprivate let fingerprint: UInt64
        /// The sort key of the last item of the page before; nil for the first page.
        let position: String?
        /// At most so many items.
        let count: Int

        /// The token of the page behind an item.
        func token(after key: String) -> String {
            PageToken(readTime: Timestamp(microseconds: 0), position: Array(key.utf8)).string(fingerprint: fingerprint)
        }
    }

    /// - Throws: INVALID_ARGUMENT for a negative size, or a token of another list.
    static func pageStart(_ size: Int32, _ token: String, _ list: [String]) throws(Status) -> PageStart {
        if size < 0 { throw .invalidArgument("The page size must not be negative.") }
        let fingerprint = PageToken.fingerprint(list)
        let position = try PageToken(token, fingerprint: fingerprint).map {
            String(decoding: $0.position, as: UTF8.self)
        }
        let count = min(size == 0 ? Limits.adminPageSizeDefault : Int(size), Limits.adminPageSizeMax)
        return PageStart(fingerprint: fingerprint, position: position, count: count)
    }
}
