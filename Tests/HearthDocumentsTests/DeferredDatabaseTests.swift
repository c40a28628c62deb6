import HearthEngine
import HearthModel
import Testing

@testable import HearthDocuments

/// A database without writes.
@Suite struct DeferredDatabaseTests {
    @Test func aDatabaseExistsFromItsFirstCommitOn() async throws {
        let store = DeferredStore(make: { MemoryStore() })
        let database = try Database(name: DatabaseName(project: "p"), store: store)
        defer { database.close() }
        func commit(_ writes: [Write]) async throws {
            _ = try await withCheckedContinuation { continuation in
                database.commit(writes) { continuation.resume(returning: $0) }
            }.get()
        }
        #expect(try database.view().document(ResourcePath(["c", "d"])) == nil)
        let name = ResourceName(database: database.name, path: ResourcePath(["c", "d"]))
        try await commit([])
        try await commit([Write(document: name, operation: .delete)])
        #expect(!database.exists && !store.isMade)
        try await commit([Write(document: name, operation: .update(fields: MapValue(), mask: nil))])
        #expect(database.exists && store.isMade)
        #expect(try database.view().document(name.path) != nil)
    }
}
