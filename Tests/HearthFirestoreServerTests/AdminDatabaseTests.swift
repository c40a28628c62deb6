@testable import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthFirestoreServer

@Suite struct AdminDatabaseTests {
    private let harness = AdminHarness()
    private let databases = "projects/p/databases"

    private func create(_ id: String, _ body: String = "{}") async throws -> DatabaseMessage {
        let operation = try await harness.call(
            "POST", databases, body, query: [("databaseId", id)], as: OperationMessage.self)
        #expect(operation.done)
        return try #require(try operation.response?.unpacked(DatabaseMessage.self))
    }

    @Test func aDatabaseIsCreatedListedAndDeleted() async throws {
        let made = try await create("blue-1", #"{"type": "FIRESTORE_NATIVE", "locationId": "eur3"}"#)
        #expect(made.name == "\(databases)/blue-1")
        #expect(made.locationId == "eur3")
        #expect(made.type == .firestoreNative)
        #expect(made.databaseEdition == .standard)
        #expect(made.versionRetentionPeriod?.seconds == 3600)
        #expect(made.uid.utf8.count == 36)
        #expect(try await harness.call("GET", made.name, as: DatabaseMessage.self).uid == made.uid)
        let list = try await harness.call("GET", databases, as: ListDatabasesResponse.self)
        #expect(list.databases.map(\.name) == [made.name])
        let stale = try await harness.refusal("DELETE", made.name, query: [("etag", "x")])
        #expect(stale?.code == .failedPrecondition)
        let deleted = try await harness.call("DELETE", made.name, as: OperationMessage.self)
        #expect(deleted.done)
        #expect(try await harness.refusal("GET", made.name)?.code == .notFound)
    }

    /// A directory in which one database is damaged.
    private struct DamagedDirectory: DatabaseDirectory {
        let registry: DatabaseRegistry
        func database(_ name: DatabaseName) throws(Status) -> Database {
            if name.database == "damaged" { throw Status(.dataLoss, "It is noise.") }
            return try registry.database(name)
        }
        func exists(_ name: DatabaseName) throws(Status) -> Bool { try registry.exists(name) }
        func databases() throws(Status) -> [DatabaseName] {
            try registry.databases() + [DatabaseName(project: "p", database: "damaged")]
        }
        func delete(_ name: DatabaseName) throws(Status) { try registry.delete(name) }
    }

    @Test func aDamagedDatabaseDoesNotHideTheOthers() async throws {
        let made = try await create("blue-1")
        let admin = AdminService(
            directory: DamagedDirectory(registry: harness.registry), transfers: harness.transfers
        ) { _, body in body() }
        let list = await withCheckedContinuation { continuation in
            do throws(Status) {
                try admin.listDatabases(ListDatabasesRequest(parent: "projects/p")) {
                    continuation.resume(returning: $0)
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        #expect(try list.get().databases.map(\.name) == [made.name])
        #expect(try list.get().unreachable == ["\(databases)/damaged"])
    }

    @Test func theDefaultDatabaseAlwaysExists() async throws {
        let first = try await harness.call("GET", harness.root, as: DatabaseMessage.self)
        #expect(first.deleteProtectionState == .deleteProtectionDisabled)
        #expect(try await harness.call("GET", harness.root, as: DatabaseMessage.self).createTime == first.createTime)
    }

    @Test func creatingAnExistingDatabaseFails() async throws {
        _ = try await create("twice")
        let status = try await harness.refusal("POST", databases, "{}", query: [("databaseId", "twice")])
        #expect(status == Status(.alreadyExists, "Database already exists. Please use another database_id"))
    }

    /// That both have found no database before does not make it two.
    @Test func ofTwoCreationsOneFails() async throws {
        let directory = Unseen(registry: harness.registry)
        let admin = AdminService(directory: directory, transfers: harness.transfers) { _, body in
            body()
        }
        let results = try (0..<2).map { number in
            let answer = Promise<Result<OperationMessage, Status>>()
            let wanted = DatabaseMessage(locationId: "l\(number)")
            try admin.createDatabase(
                CreateDatabaseRequest(parent: "projects/p", database: wanted, databaseId: "race")
            ) { answer.give($0) }
            return answer.wait()
        }
        #expect(try results[0].get().done)
        #expect(throws: Status.self) { try results[1].get() }
        let database = try await harness.call("GET", "\(databases)/race", as: DatabaseMessage.self)
        #expect(database.locationId == "l0")
    }

    /// Shows what a request sees whose database another one makes meanwhile.
    private struct Unseen: DatabaseDirectory {
        let registry: DatabaseRegistry

        func database(_ name: DatabaseName) throws(Status) -> Database { try registry.database(name) }
        func exists(_ name: DatabaseName) -> Bool { false }
        func databases() -> [DatabaseName] { [] }
        func delete(_ name: DatabaseName) throws(Status) { try registry.delete(name) }
    }

    @Test func idsFollowTheGrammar() async throws {
        for id in ["(default)", "abcd", "a-b1", "a" + String(repeating: "x", count: 62)] {
            #expect(throws: Never.self, "\(id)") { try AdminService.check(databaseID: id) }
        }
        for id in [
            "", "abc", "1abc", "abc-", "aBcd", "ab_cd", "default)", "a" + String(repeating: "x", count: 63),
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        ] {
            #expect(throws: Status.self, "\(id)") { try AdminService.check(databaseID: id) }
        }
    }

    @Test func deleteProtectionProtects() async throws {
        let name = try await create("kept").name
        let first = try await harness.call("GET", name, as: DatabaseMessage.self)
        let mask = [(name: "updateMask", value: "deleteProtectionState")]
        let operation = try await harness.call(
            "PATCH", name, #"{"deleteProtectionState": "DELETE_PROTECTION_ENABLED"}"#, query: mask,
            as: OperationMessage.self)
        let updated = try #require(try operation.response?.unpacked(DatabaseMessage.self))
        #expect(updated.deleteProtectionState == .deleteProtectionEnabled)
        #expect(updated.etag != first.etag)
        #expect(try await harness.refusal("DELETE", name)?.code == .failedPrecondition)
        let stale = try await harness.refusal("PATCH", name, #"{"etag": "\#(first.etag)"}"#, query: mask)
        #expect(stale?.code == .failedPrecondition)
        _ = try await harness.call(
            "PATCH", name, #"{"deleteProtectionState": "DELETE_PROTECTION_DISABLED"}"#, query: mask)
        #expect(try await harness.refusal("DELETE", name) == nil)
    }

    /// As `firebase firestore:databases:update` sends it, without a mask, and as gcloud does.
    @Test func pointInTimeRecoveryIsSwitchedOnAndOff() async throws {
        let made = try await create("blue-1")
        #expect(made.pointInTimeRecoveryEnablement == .pointInTimeRecoveryDisabled)
        func change(_ body: String, _ mask: String? = nil) async throws -> DatabaseMessage {
            let query = mask.map { [(name: "updateMask", value: $0)] } ?? []
            let operation = try await harness.call("PATCH", made.name, body, query: query, as: OperationMessage.self)
            return try #require(try operation.response?.unpacked(DatabaseMessage.self))
        }
        let on = #"{"pointInTimeRecoveryEnablement": "POINT_IN_TIME_RECOVERY_ENABLED"}"#
        let off = #"{"pointInTimeRecoveryEnablement": "POINT_IN_TIME_RECOVERY_DISABLED"}"#
        var changed = try await change(on)
        #expect(changed.pointInTimeRecoveryEnablement == .pointInTimeRecoveryEnabled)
        #expect(changed.versionRetentionPeriod?.seconds == 604_800 && changed.etag != made.etag)
        #expect(changed.deleteProtectionState == .deleteProtectionDisabled)
        changed = try await change(off, "deleteProtectionState")
        #expect(changed.pointInTimeRecoveryEnablement == .pointInTimeRecoveryEnabled)
        let stale = try await harness.refusal("PATCH", made.name, #"{"etag": "x", \#(off.dropFirst())"#)
        #expect(stale?.code == .failedPrecondition)
        #expect(
            try await harness.call("GET", made.name, as: DatabaseMessage.self).pointInTimeRecoveryEnablement
                == .pointInTimeRecoveryEnabled)
        changed = try await change(off, "pointInTimeRecoveryEnablement")
        #expect(changed.pointInTimeRecoveryEnablement == .pointInTimeRecoveryDisabled)
        #expect(changed.versionRetentionPeriod?.seconds == 3600)
        let operation = try await harness.call(
            "POST", databases, on, query: [("databaseId", "kept")], as: OperationMessage.self)
        let kept = try #require(try operation.response?.unpacked(DatabaseMessage.self))
        #expect(kept.pointInTimeRecoveryEnablement == .pointInTimeRecoveryEnabled)
    }

    @Test func unsupportedFeaturesFailWithUnimplemented() async throws {
        let cases: [(method: String, path: String, body: String, code: Status.Code)] = [
            ("POST", databases, #"{"type": "DATASTORE_MODE"}"#, .unimplemented),
            ("POST", databases, #"{"databaseEdition": "ENTERPRISE"}"#, .unimplemented),
            ("POST", "\(databases)/(default):exportDocuments", "{}", .failedPrecondition),
            ("POST", "\(databases)/(default):importDocuments", "{}", .failedPrecondition),
            ("GET", "\(databases)/(default)/backupSchedules", "", .unimplemented),
            ("GET", "projects/p/locations/local/backups", "", .unimplemented),
            ("PATCH", "\(databases)/(default)", #"{"concurrencyMode": "OPTIMISTIC"}"#, .unimplemented),
        ]
        for (method, path, body, code) in cases {
            var query: [(name: String, value: String)] = []
            if method == "POST", path == databases { query = [("databaseId", "other")] }
            if method == "PATCH" { query = [("updateMask", "concurrencyMode")] }
            #expect(try await harness.refusal(method, path, body, query: query)?.code == code, "\(method) \(path)")
        }
    }

    @Test func otherRoutesAreNotOurs() async throws {
        for (method, path) in [
            ("GET", "projects/p"), ("GET", "projects/p/databases/d/documents/c/x"), ("PUT", databases),
            ("POST", "\(databases)/d/collectionGroups/c/fields/a"), ("GET", "\(databases)/d/collectionGroups/c"),
            ("DELETE", "\(databases)/d/operations"), ("GET", "x/y/z"),
        ] {
            #expect(try await harness.call(method, path) == nil, "\(method) \(path)")
        }
    }

    @Test func locations() async throws {
        let list = try await harness.call("GET", "projects/p/locations", as: ListLocationsResponse.self)
        #expect(list.locations.map(\.locationId) == ["local"])
        #expect(
            try await harness.call("GET", list.locations[0].name, as: LocationMessage.self).name
                == list.locations[0].name)
        #expect(try await harness.refusal("GET", "projects/p/locations/mars")?.code == .notFound)
    }

    @Test func bulkDeletion() async throws {
        let database = try harness.database
        for number in 0..<450 {
            try await database.put("a/\(number)", ["x": .integer(1)])
            if number < 5 { try await database.put("a/\(number)/b/\(number)", ["x": .integer(1)]) }
        }
        func count(_ collection: String) throws -> Int {
            try database.view().documentKeys(of: collection, after: nil, limit: 1000).count
        }
        let path = "\(harness.root):bulkDeleteDocuments"
        var operation = try await harness.call("POST", path, #"{"collectionIds": ["a"]}"#, as: OperationMessage.self)
        operation = try await harness.end(of: operation)
        #expect(operation.error == nil)
        let metadata = try #require(try operation.metadata?.unpacked(BulkDeleteDocumentsMetadata.self))
        let documents = try #require(metadata.progressDocuments)
        #expect(documents.completedWork == 450 && documents.estimatedWork == 450)
        let bytes = try #require(metadata.progressBytes)
        #expect(bytes.completedWork > 450 * 10 && bytes.estimatedWork == bytes.completedWork)
        #expect(metadata.operationState == .successful && metadata.endTime != nil)
        #expect(try count("a") == 0)
        #expect(try count("b") == 5)
        let many = (0...100).map { "\"c\($0)\"" }.joined(separator: ", ")
        for body in [
            "{}", #"{"namespaceIds": ["x"]}"#, #"{"namespaceIds": ["", ""]}"#, #"{"collectionIds": ["a", "a"]}"#,
            #"{"collectionIds": [\#(many)]}"#,
        ] {
            #expect(try await harness.refusal("POST", path, body)?.code == .invalidArgument)
        }
        let absent = try DatabaseName(parsing: "projects/p/databases/absent")
        let deletion = absent.string + ":bulkDeleteDocuments"
        #expect(try await harness.refusal("POST", deletion, #"{"collectionIds": ["a"]}"#)?.code == .notFound)
        #expect(try !harness.registry.exists(absent))
        #expect(try count("b") == 5)
        operation = try await harness.call("POST", path, #"{"namespaceIds": [""]}"#, as: OperationMessage.self)
        #expect(try await harness.end(of: operation).error == nil)
        #expect(try count("b") == 0)
    }
}
