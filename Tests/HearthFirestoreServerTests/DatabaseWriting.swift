import HearthModel
import HearthDocuments

/// Callbacks as functions that wait.
extension Database {
    func commit(_ writes: [Write]) async throws {
        _ = try await withCheckedContinuation { continuation in
            commit(writes) { continuation.resume(returning: $0) }
        }.get()
    }

    func put(_ path: String, _ fields: [String: Value]) async throws {
        let name = ResourceName(database: name, path: ResourcePath(path.split(separator: "/").map(String.init)))
        let map = MapValue(fields.map { MapValue.Field(name: $0.key, value: $0.value) })
        try await commit([
            Write(document: name, operation: .update(fields: map, mask: nil), transforms: [], precondition: .none)
        ])
    }
}
