import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthFirestoreServer

/// Long-running operations, which are kept with the data.
@Suite struct OperationTests {
    private let databases = "projects/p/databases"

    private func create(_ harness: AdminHarness, _ id: String) async throws -> OperationMessage {
        try await harness.call("POST", databases, "{}", query: [("databaseId", id)], as: OperationMessage.self)
    }

    private func list(
        _ harness: AdminHarness, _ id: String, _ query: [(name: String, value: String)] = []
    ) async throws -> ListOperationsResponse {
        try await harness.call("GET", "\(databases)/\(id)/operations", query: query, as: ListOperationsResponse.self)
    }

    @Test func operationsOutliveTheProcess() async throws {
        let provider = MemoryStoreProvider()
        var harness = try AdminHarness(provider: provider)
        let operation = try await create(harness, "ops1")
        #expect(operation.done)
        harness = try AdminHarness(provider: provider)
        let again = try await harness.call("GET", operation.name, as: OperationMessage.self)
        #expect(again.protobuf() == operation.protobuf())
        #expect(try await list(harness, "ops1").operations.map { $0.protobuf() } == [operation.protobuf()])
        #expect(try await harness.call("POST", operation.name + ":cancel", "{}") == Array("{}".utf8))
        #expect(try await harness.call("DELETE", operation.name) == Array("{}".utf8))
        #expect(try await harness.refusal("GET", operation.name)?.code == .notFound)
        #expect(try await harness.refusal("DELETE", operation.name)?.code == .notFound)
        #expect(try await list(harness, "ops1").operations.isEmpty)
        #expect(
            try IntegrityCheck.run(try harness.registry.database(DatabaseName(parsing: "\(databases)/ops1"))).isSound)
    }

    @Test func theEndOfTheProcessEndsThem() async throws {
        let provider = MemoryStoreProvider()
        var harness = try AdminHarness(provider: provider)
        let table = harness.admin.operations
        let metadata = ExportDocumentsMetadata(
            startTime: table.now, operationState: .processing, outputUriPrefix: "file:///x")
        let begun = Promise<Result<OperationMessage, Status>>()
        table.begin(try harness.database, metadata: { AnyMessage(metadata) }) { begun.give($0) }
        let operation = try begun.wait().get()
        let again = try await harness.call("GET", operation.name, as: OperationMessage.self)
        #expect(again.protobuf() == operation.protobuf())
        harness = try AdminHarness(provider: provider)
        for _ in 0..<2 {
            let ended = try await harness.call("GET", operation.name, as: OperationMessage.self)
            #expect(ended.done && ended.error?.code == 10)
            #expect(ended.error?.message.contains("restarted") == true)
            let left = try #require(try ended.metadata?.unpacked(ExportDocumentsMetadata.self))
            #expect(left.operationState == .failed && left.endTime != nil && left.outputUriPrefix == "file:///x")
        }
    }

    /// Builds of indexes are resumed when their database is opened, so that their operations end as the catalog says.
    @Test func operationsOfBuildsGoOn() async throws {
        let provider = MemoryStoreProvider()
        var harness = try AdminHarness(provider: provider)
        let index =
            #"{"queryScope": "COLLECTION", "fields": [{"fieldPath": "a", "order": "ASCENDING"}, "#
            + #"{"fieldPath": "b", "order": "ASCENDING"}]}"#
        let made = try await harness.call(
            "POST", "\(harness.root)/collectionGroups/c/indexes", index, as: OperationMessage.self)
        let built = try await harness.end(of: made)
        let name = try #require(try built.metadata?.unpacked(IndexOperationMetadata.self)).index
        let absent = name.replacing("/collectionGroups/c/", with: "/collectionGroups/d/")
        var operations: [OperationMessage] = []
        for name in [name, absent] {
            let metadata = IndexOperationMetadata(index: name, state: .processing)
            let begun = Promise<Result<OperationMessage, Status>>()
            harness.admin.operations.begin(try harness.database, metadata: { AnyMessage(metadata) }) { begun.give($0) }
            operations.append(try begun.wait().get())
        }
        harness = try AdminHarness(provider: provider)
        let ended = try await harness.call("GET", operations[0].name, as: OperationMessage.self)
        #expect(try ended.response?.unpacked(IndexMessage.self)?.state == .ready)
        #expect(try ended.metadata?.unpacked(IndexOperationMetadata.self)?.state == .successful)
        let failed = try await harness.call("GET", operations[1].name, as: OperationMessage.self)
        #expect(failed.error?.message.contains("deleted") == true)
    }

    /// Puts overrides in force, and has what follows fail.
    private func interrupt(
        _ database: Database, _ store: FaultyStore, _ override: FieldOverride,
        until isWanted: (IndexCatalog) -> Bool
    ) {
        func set(_ overrides: [FieldOverride]) {
            let ended = Promise<Void>()
            database.setCatalog(definitions: [], overrides: overrides) { _ in ended.give(()) }
            ended.wait()
        }
        for operation in 0..<100 where !isWanted(database.catalog) {
            set([])
            store.fail(at: operation)
            set([override])
            store.fail(at: nil)
        }
    }

    /// Those of time-to-live policies, and of indexes of single fields, end when the catalog has no more to do.
    @Test(arguments: [true, false])
    func interruptedOperationsOfFieldsGoOn(_ isPolicy: Bool) async throws {
        let store = FaultyStore()
        let harness = try AdminHarness(provider: OneStore(store))
        let database = try harness.database
        for number in 0..<5 { try await database.put("c/\(number)", ["f": .integer(1)]) }
        let override = FieldOverride(
            collectionID: "c", path: try FieldPath(parsing: "f"),
            indexes: isPolicy ? FieldOverride.automaticIndexes : [], timeToLive: isPolicy ? .init() : nil)
        interrupt(database, store, override) { catalog in
            let isBuilding = !catalog.isChanging && catalog.definitions.contains { $0.state == .creating }
            return isPolicy ? isBuilding : catalog.isChanging
        }
        let metadata = FieldOperationMetadata(
            field: "\(harness.root)/collectionGroups/c/fields/f", state: .processing)
        let operation = OperationMessage(name: "o", metadata: AnyMessage(metadata))
        let interrupted = InterruptedOperation(operation, database, endTime: Timestamp(microseconds: 1))
        #expect(try interrupted.ended() == nil)
        let resumed = Promise<Void>()
        database.setCatalog(definitions: [], overrides: [override]) { _ in resumed.give(()) }
        resumed.wait()
        let ended = try #require(try interrupted.ended())
        #expect(try ended.metadata?.unpacked(FieldOperationMetadata.self)?.state == .successful)
        let field = try ended.response?.unpacked(FieldMessage.self)
        #expect(isPolicy ? field?.ttlConfig?.state == .active : field?.indexConfig?.indexes.isEmpty == true)
    }

    @Test func operationsAreBounded() async throws {
        let harness = AdminHarness()
        let database = try harness.database
        let table = harness.admin.operations
        func begin() async throws -> OperationMessage {
            try await withCheckedContinuation { continuation in
                table.begin(database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) {
                    continuation.resume(returning: $0)
                }
            }.get()
        }
        var names: [String] = []
        for _ in 0..<Limits.operationsPerDatabaseMax { names.append(try await begin().name) }
        await #expect(throws: Status.self) { try await begin() }
        let some = try table.operation(names[5])
        table.handle(some).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        #expect(await eventually { (try? table.operation(names[5]).done) == true })
        _ = try await begin()
        #expect(try table.operations(of: database.name).operations.count == Limits.operationsPerDatabaseMax)
        #expect(throws: Status.self) { try table.operation(names[5]) }
    }

    @Test func listsHavePagesAndFilters() async throws {
        let harness = AdminHarness()
        for id in ["ops1", "ops2"] { _ = try await create(harness, id) }
        for _ in 0..<4 {
            let body = #"{"deleteProtectionState": "DELETE_PROTECTION_DISABLED"}"#
            _ = try await harness.call("PATCH", "\(databases)/ops1", body)
        }
        var token = ""
        var names: [String] = []
        repeat {
            let page = try await list(harness, "ops1", [("pageSize", "2"), ("pageToken", token)])
            #expect(page.operations.count <= 2)
            names += page.operations.map(\.name)
            token = page.nextPageToken
        } while !token.isEmpty
        #expect(names.count == 5 && names == names.sorted())
        let deletion = try await harness.call(
            "POST", "\(databases)/ops1:bulkDeleteDocuments", #"{"collectionIds": ["c"]}"#, as: OperationMessage.self)
        _ = try await harness.end(of: deletion)
        for (filter, count) in [
            ("done=true", 6), ("done:false", 0), ("metadata.operationState=SUCCESSFUL", 1),
            (#"done=true AND metadata.operationState="FAILED""#, 0), ("metadata.none=x", 0),
        ] {
            #expect(try await list(harness, "ops1", [("filter", filter)]).operations.count == count, "\(filter)")
        }
        for filter in ["name:x", "done=maybe", "done=true AND", "done=true OR done=false", "AND", "done", "error:*"] {
            let status = try await harness.refusal(
                "GET", "\(databases)/ops1/operations", query: [("filter", filter)])
            #expect(status?.code == .invalidArgument, "\(filter)")
        }
    }

    /// Of those with large metadata a page has few, whatever it was asked for, and all pages together have each once.
    @Test func pagesHaveABoundOfBytes() async throws {
        let harness = AdminHarness()
        let database = try harness.database
        let table = harness.admin.operations
        let ids = (0..<100).map { "\($0)" + String(repeating: "x", count: 1490) }
        var made: [String] = []
        for number in 0..<20 {
            let begun = Promise<Result<OperationMessage, Status>>()
            let metadata = BulkDeleteDocumentsMetadata(collectionIds: number % 2 == 0 ? ids : [])
            table.begin(database, metadata: { AnyMessage(metadata) }) { begun.give($0) }
            made.append(try begun.wait().get().name)
            if number == 9 {
                made.append(
                    table.completeDeletion(
                        of: database.name, metadata: DeleteDatabaseMetadata(), response: EmptyMessage()
                    ).name)
            }
        }
        for size in ["1000", "1"] {
            var token = ""
            var names: [String] = []
            repeat {
                let query = [("pageSize", size), ("pageToken", token)]
                let page = try await harness.call(
                    "GET", "\(harness.root)/operations", query: query, as: ListOperationsResponse.self)
                let sizeBytes = page.operations.reduce(0) { $0 + $1.protobuf().count }
                #expect(sizeBytes < Limits.adminPageSizeBytesMax + 200_000)
                names += page.operations.map(\.name)
                token = page.nextPageToken
            } while !token.isEmpty
            #expect(names == made)
        }
    }

    @Test func deletingADatabaseDeletesItsOperations() async throws {
        let harness = AdminHarness()
        let created = try await create(harness, "ops1")
        let deleted = try await harness.call("DELETE", "\(databases)/ops1", as: OperationMessage.self)
        #expect(deleted.done)
        #expect(try await harness.refusal("GET", created.name)?.code == .notFound)
        #expect(try await list(harness, "ops1").operations.map { $0.protobuf() } == [deleted.protobuf()])
        let again = try await harness.call("GET", deleted.name, as: OperationMessage.self)
        #expect(again.protobuf() == deleted.protobuf())
        #expect(try !harness.registry.exists(DatabaseName(parsing: "\(databases)/ops1")))
        #expect(try await harness.call("DELETE", deleted.name) == Array("{}".utf8))
        #expect(try await list(harness, "ops1").operations.isEmpty)
    }

    /// What was deleted while it was under way is not stored again when it ends.
    @Test func deletedOperationsStayDeleted() throws {
        let harness = AdminHarness()
        let (database, table) = (try harness.database, harness.admin.operations)
        func begin() throws -> OperationMessage {
            let begun = Promise<Result<OperationMessage, Status>>()
            table.begin(database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) { begun.give($0) }
            return try begun.wait().get()
        }
        let operation = try begin()
        let deleted = Promise<Result<Void, Status>>()
        try table.delete(operation.name) { deleted.give($0) }
        try deleted.wait().get()
        #expect(throws: Status.self) { try table.operation(operation.name) }
        table.handle(operation).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        // Notes change in their order.
        let next = try begin()
        #expect(throws: Status.self) { try table.operation(operation.name) }
        #expect(try table.operations(of: database.name).operations.map(\.name) == [next.name])
    }

    @Test func deletionsAreBounded() async throws {
        let harness = AdminHarness()
        let name = try DatabaseName(parsing: "\(databases)/ops1")
        let names = (0...Limits.operationsOfDeletedMax).map { _ in
            harness.admin.operations.completeDeletion(
                of: name, metadata: DeleteDatabaseMetadata(), response: EmptyMessage()
            ).name
        }
        #expect(try harness.admin.operations.operations(of: name).operations.map(\.name) == Array(names.dropFirst()))
    }

    /// Beyond the bound nobody waits: the answer is what there is.
    @Test func thoseWhoWaitAreBounded() throws {
        let harness = AdminHarness()
        let table = harness.admin.operations
        let begun = Promise<Result<OperationMessage, Status>>()
        table.begin(try harness.database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) { begun.give($0) }
        let operation = try begun.wait().get()
        let waiting = (0..<Limits.operationWaitersMax).map { _ in Promise<Result<OperationMessage, Status>>() }
        for promise in waiting { table.wait(operation.name, milliseconds: 60_000) { promise.give($0) } }
        let more = Promise<Result<OperationMessage, Status>>()
        table.wait(operation.name, milliseconds: 60_000) { more.give($0) }
        #expect(more.isGiven && !waiting.contains { $0.isGiven })
        table.handle(operation).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        for promise in waiting { #expect(try promise.wait().get().done) }
    }

    @Test func anEndThatCannotBeStoredIsShownAllTheSame() async throws {
        let store = FaultyStore()
        let harness = try AdminHarness(provider: OneStore(store))
        let database = try harness.database
        let table = harness.admin.operations
        let begun = Promise<Result<OperationMessage, Status>>()
        table.begin(database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) { begun.give($0) }
        let operation = try begun.wait().get()
        store.refuse(transactions: 1)
        table.handle(operation).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        #expect(try await harness.end(of: operation).response != nil)
        store.refuse(transactions: 1)
        let refused = Promise<Result<OperationMessage, Status>>()
        table.begin(database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) { refused.give($0) }
        #expect(throws: Status.self) { try refused.wait().get() }
        #expect(try table.operations(of: database.name).operations.map(\.name) == [operation.name])
        func stored() throws -> Bool {
            let fields = try database.note(Database.operationNotes + operation.name.split(separator: "/").last!)
            guard case .bytes(let bytes)? = fields?["operation"] else { return false }
            return try OperationMessage(protobuf: bytes).response != nil
        }
        #expect(try !stored())
        // As soon as it can be, it is stored, too: after a restart it would count as interrupted.
        table.tick()
        #expect(await eventually { (try? stored()) == true })
    }

    /// Of a database that was made anew before the deletion of its predecessor was noted.
    @Test func operationsOfASuccessorGoOn() async throws {
        let harness = AdminHarness()
        _ = try await create(harness, "ops1")
        let name = try DatabaseName(parsing: "\(databases)/ops1")
        let table = harness.admin.operations
        func begin() throws -> OperationMessage {
            let begun = Promise<Result<OperationMessage, Status>>()
            table.begin(try harness.registry.database(name), metadata: { AnyMessage(CreateDatabaseMetadata()) }) {
                begun.give($0)
            }
            return try begun.wait().get()
        }
        let former = try begin()
        try harness.registry.delete(name)
        let operation = try begin()
        _ = table.completeDeletion(of: name, metadata: DeleteDatabaseMetadata(), response: EmptyMessage())
        #expect(throws: Status.self) { try table.operation(former.name) }
        table.handle(operation).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        #expect(await eventually { (try? table.operation(operation.name).response) != nil })
    }

    @Test func waitingEndsWithTheOperationOrTheTime() async throws {
        let clock = StoppedClock()
        let harness = try AdminHarness(clock: clock)
        let table = harness.admin.operations
        let begun = Promise<Result<OperationMessage, Status>>()
        table.begin(try harness.database, metadata: { AnyMessage(CreateDatabaseMetadata()) }) { begun.give($0) }
        let operation = try begun.wait().get()
        let nothing = try await harness.call(
            "POST", operation.name + ":wait", #"{"timeout": "0s"}"#, as: OperationMessage.self)
        #expect(!nothing.done)
        let late = Promise<Result<OperationMessage, Status>>()
        table.wait(operation.name, milliseconds: 1500) { late.give($0) }
        clock.advance(seconds: 1)
        table.tick()
        #expect(!late.isGiven)
        clock.advance(seconds: 1)
        table.tick()
        #expect(try !late.wait().get().done)
        let ended = Promise<Result<OperationMessage, Status>>()
        table.wait(operation.name, milliseconds: 1500) { ended.give($0) }
        table.handle(operation).end(CreateDatabaseMetadata(), Result<EmptyMessage, Status>.success(EmptyMessage()))
        #expect(try ended.wait().get().done)
        let absent = try await harness.refusal("POST", operation.name + "0:wait", "{}")
        #expect(absent?.code == .notFound)
        let negative = try await harness.refusal("POST", operation.name + ":wait", #"{"timeout": "-1s"}"#)
        #expect(negative?.code == .invalidArgument)
    }
}
