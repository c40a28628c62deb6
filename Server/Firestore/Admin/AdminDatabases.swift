import HearthModel
import HearthDocuments
import HearthWire

/// Administration of databases.
extension AdminService {
    private func exists(_ name: DatabaseName) throws(Status) -> Bool {
        try directory.exists(name)
    }

    /// The default database exists before anything is written to it; others are created by their first use or by
    /// `createDatabase`.
    func existing(_ name: DatabaseName) throws(Status) -> Database {
        if name.database != DatabaseName.defaultDatabase, try !exists(name) {
            throw .notFound("The database \(name.database) does not exist for project \(name.project).")
        }
        return try directory.database(name)
    }

    /// The settings of a database; created and stored at the first request.
    /// - Parameters:
    ///   - recovery: whether point-in-time recovery is on from then on; nil leaves it.
    ///   - isNew: fails with ALREADY_EXISTS when there are settings: of two requests that create a database one does.
    private func settings(
        of database: Database, recovery: Bool? = nil, isNew: Bool = false,
        _ change: @escaping @Sendable (inout DatabaseSettings) throws(Status) -> Void,
        _ answer: @escaping Answer<DatabaseMessage>
    ) {
        let clock = clock
        database.changeNote(
            DatabaseSettings.note, recovery: recovery,
            { fields throws(Status) in
                if isNew, fields != nil { throw Self.alreadyExists }
                var settings = fields.flatMap(DatabaseSettings.init) ?? DatabaseSettings(now: clock.now())
                try change(&settings)
                return settings.fields
            },
            completion: { result in
                do throws(Status) {
                    let settings = DatabaseSettings(try result.get()) ?? DatabaseSettings(now: clock.now())
                    answer(.success(try Self.message(settings, database)))
                } catch {
                    answer(.failure(error))
                }
            })
    }

    private static func message(
        _ settings: DatabaseSettings, _ database: Database
    ) throws(Status) -> DatabaseMessage {
        settings.message(database.name, try database.versionRetention())
    }

    private func present(_ database: Database) throws(Status) -> DatabaseSettings? {
        try database.note(DatabaseSettings.note).flatMap(DatabaseSettings.init)
    }

    // MARK: Methods

    func getDatabase(_ request: GetDatabaseRequest, _ answer: @escaping Answer<DatabaseMessage>) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        background({ answer(.failure($0)) }) { [self] in
            do throws(Status) {
                let database = try existing(name)
                // Reading the settings of a missing database creates nothing.
                if !database.exists {
                    let settings = DatabaseSettings(ofMissing: name, now: startTime)
                    return answer(.success(try Self.message(settings, database)))
                }
                // Reading existing settings costs no commit.
                if let settings = try present(database) {
                    return answer(.success(try Self.message(settings, database)))
                }
                settings(of: database, { _ in }, answer)
            } catch {
                answer(.failure(error))
            }
        }
    }

    package func listDatabases(
        _ request: ListDatabasesRequest, _ answer: @escaping Answer<ListDatabasesResponse>
    ) throws(Status) {
        let project = try Self.project(request.parent)
        inBackground(answer) { () throws(Status) in
            let names = try directory.databases().filter { UTF8Order.equal($0.project, project) }
                .sorted { UTF8Order.compare($0.database, $1.database) < 0 }
            var response = ListDatabasesResponse()
            for name in names {
                do throws(Status) {
                    let database = try directory.database(name)
                    // Deleted after its name was read.
                    if !database.exists { continue }
                    let settings = try present(database) ?? DatabaseSettings(now: clock.now())
                    response.databases.append(try Self.message(settings, database))
                } catch {
                    if error.code == .notFound { continue }
                    // One that can't be read must not hide the others. Source: `unreachable` of ListDatabasesResponse in
                    // firestore_admin.proto. The store has logged the reason.
                    response.unreachable.append(name.string)
                }
            }
            return response
        }
    }

    /// `projects/P`
    static func project(_ string: String) throws(Status) -> String {
        let segments = string.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count == 2, segments[0] == "projects", !segments[1].isEmpty else {
            throw .invalidArgument("Invalid project name \"\(string)\": expected projects/{project}.")
        }
        return String(segments[1])
    }

    func createDatabase(
        _ request: CreateDatabaseRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let project = try Self.project(request.parent)
        try Self.check(databaseID: request.databaseId)
        let wanted = request.database ?? DatabaseMessage()
        try Self.checkKind(wanted)
        let name = DatabaseName(project: project, database: request.databaseId)
        background({ answer(.failure($0)) }) { [self] in
            do throws(Status) {
                if try exists(name) { throw Self.alreadyExists }
                let count = try directory.databases().count { UTF8Order.equal($0.project, project) }
                if count >= Limits.databasesPerProjectMax {
                    throw .resourceExhausted("A project may have at most \(Limits.databasesPerProjectMax) databases.")
                }
                let database = try directory.database(name)
                settings(
                    of: database, recovery: wanted.pointInTimeRecoveryEnablement == .pointInTimeRecoveryEnabled,
                    isNew: true,
                    { settings in
                        if !wanted.locationId.isEmpty { settings.locationID = wanted.locationId }
                        settings.isDeleteProtected = wanted.deleteProtectionState == .deleteProtectionEnabled
                    },
                    { complete(database, CreateDatabaseMetadata(), $0, answer) })
            } catch {
                answer(.failure(error))
            }
        }
    }

    private static let alreadyExists = Status(
        .alreadyExists, "Database already exists. Please use another database_id")

    private func complete<Response: WireMessage>(
        _ database: Database, _ metadata: some WireMessage, _ result: Result<Response, Status>,
        _ answer: @escaping Answer<OperationMessage>
    ) {
        do throws(Status) {
            operations.complete(database, metadata: metadata, response: try result.get(), answer)
        } catch {
            answer(.failure(error))
        }
    }

    /// Source: the documentation of `database_id` in CreateDatabaseRequest.
    static func check(databaseID id: String) throws(Status) {
        if id == DatabaseName.defaultDatabase { return }
        let bytes = Array(id.utf8)
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        func isHexadecimal(_ byte: UInt8) -> Bool {
            isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        let groups = bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let isUUID = groups.map(\.count) == [8, 4, 4, 4, 12] && groups.joined().allSatisfy(isHexadecimal)
        guard (4...63).contains(bytes.count), let first = bytes.first, isLetter(first), let last = bytes.last,
            isLetter(last) || isDigit(last), !isUUID,
            bytes.allSatisfy({ isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") })
        else {
            throw .invalidArgument(
                "Invalid database id \"\(id)\": expected (default), or 4 to 63 lower-case letters, digits and hyphens that "
                    + "begin with a letter, end with a letter or digit and are not a UUID.")
        }
    }

    private static func checkKind(_ message: DatabaseMessage) throws(Status) {
        if message.type == .datastoreMode {
            throw .unimplemented("Hearth serves databases in Native mode; DATASTORE_MODE is not available.")
        }
        if message.databaseEdition == .enterprise {
            throw .unimplemented("Hearth serves the Standard edition; ENTERPRISE is not available.")
        }
        if message.cmekConfig != nil { throw .unimplemented("Customer-managed encryption keys are not available.") }
    }

    func updateDatabase(
        _ request: UpdateDatabaseRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        guard let wanted = request.database else { throw .invalidArgument("The request has no database.") }
        let name = try DatabaseName(parsing: wanted.name)
        try Self.checkKind(wanted)
        var (protection, recovery): (Bool?, Bool?)
        for field in request.updateMask ?? ["delete_protection_state", "point_in_time_recovery_enablement"] {
            switch field {
            case "delete_protection_state", "deleteProtectionState":
                if wanted.deleteProtectionState != .unspecified {
                    protection = wanted.deleteProtectionState == .deleteProtectionEnabled
                }
            case "point_in_time_recovery_enablement", "pointInTimeRecoveryEnablement":
                if wanted.pointInTimeRecoveryEnablement != .unspecified {
                    recovery = wanted.pointInTimeRecoveryEnablement == .pointInTimeRecoveryEnabled
                }
            case "etag", "name": break
            case "concurrency_mode", "concurrencyMode":
                if wanted.concurrencyMode != .pessimistic {
                    throw .unimplemented(
                        "The concurrency mode of a database is PESSIMISTIC; a transaction may ask for OPTIMISTIC.")
                }
            default: throw .invalidArgument("The field \"\(field)\" of a database can't be changed.")
            }
        }
        let clock = clock
        background({ answer(.failure($0)) }) { [self, protection, recovery] in
            do throws(Status) {
                let database = try existing(name)
                settings(
                    of: database, recovery: recovery,
                    { settings throws(Status) in
                        if !wanted.etag.isEmpty, wanted.etag != settings.etag { throw Self.staleTag }
                        if let protection { settings.isDeleteProtected = protection }
                        settings.updateTime = max(
                            clock.now(), Timestamp(microseconds: settings.updateTime.microseconds + 1))
                    },
                    { complete(database, UpdateDatabaseMetadata(), $0, answer) })
            } catch {
                answer(.failure(error))
            }
        }
    }

    private static let staleTag = Status.failedPrecondition(
        "The etag does not match the current etag of the database. Read the database again and retry.")

    /// A damaged database, which can't be opened, can be deleted all the same.
    private func settingsForDeletion(
        _ name: DatabaseName, _ request: DeleteDatabaseRequest
    ) throws(Status) -> (DatabaseSettings, VersionRetention) {
        do throws(Status) {
            let database = try directory.database(name)
            let settings = try present(database) ?? DatabaseSettings(now: clock.now())
            return (settings, try database.versionRetention())
        } catch {
            if error.code != .dataLoss || !request.etag.isEmpty { throw error }
            let retention = VersionRetention(
                seconds: Limits.retentionSeconds, earliest: clock.now().microseconds, isPointInTimeRecovery: false)
            return (DatabaseSettings(now: clock.now()), retention)
        }
    }

    func deleteDatabase(
        _ request: DeleteDatabaseRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        inBackground(answer) { () throws(Status) in
            guard try exists(name) else {
                throw .notFound("The database \(name.database) does not exist for project \(name.project).")
            }
            let (settings, retention) = try settingsForDeletion(name, request)
            if settings.isDeleteProtected {
                throw .failedPrecondition(
                    "The database \(name.database) has delete protection enabled. Disable it before deleting.")
            }
            if !request.etag.isEmpty, request.etag != settings.etag { throw Self.staleTag }
            try directory.delete(name)
            return operations.completeDeletion(
                of: name, metadata: DeleteDatabaseMetadata(), response: settings.message(name, retention))
        }
    }
}
