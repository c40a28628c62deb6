import HearthDocuments
import HearthExport
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// `POST /emulator/v1/projects/P:export`, `:import` and `:bulkDelete`, also below `…/databases/D`, as firebase-tools call
/// them, and `DELETE /emulator/v1/projects/P/databases/D/documents/PATH`, by which the Emulator UI deletes a document with all
/// that is below it, or a collection. Answered when all is done. Only on servers for local development: any folder of the
/// machine may be named.
package struct EmulatorTransferHTTP: HTTPExtension {
    private enum Verb: String {
        case export, `import`, bulkDelete
    }

    private let service: FirestoreService
    private let admin: AdminService
    private var transfers: TransferService { admin.transfers }

    package init(service: FirestoreService, admin: AdminService) {
        self.service = service
        self.admin = admin
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        if head.method == "DELETE", let segments = Self.pathSegments(head.path) {
            delete(segments, exchange)
            return true
        }
        // As in Google's emulator, forms are not answered: pages may post them anywhere.
        guard head.method == "POST", let verb = Self.verb(head.path),
            !Self.isForm(head.firstValue("content-type") ?? "")
        else { return false }
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions())
        exchange.collectBody(limitBytes: Limits.transferRequestBytesMax) { result in
            do throws(Status) {
                let request = try Request(try result.get())
                admin.background({ status in call.onLoop { call.finish(status) } }) {
                    run(verb, request) { result in
                        call.onLoop {
                            switch result {
                            case .success: call.respond(EmptyMessage())
                            case .failure(let status): call.finish(status)
                            }
                        }
                    }
                }
            } catch {
                call.finish(error)
            }
        }
        return true
    }

    // MARK: Deletion of a path

    /// Those of `/emulator/v1/projects/P/databases/D/documents/PATH`, percent-encoded; nil for other paths, also for that of
    /// the whole database, which `RESTFrontEnd` answers.
    private static func pathSegments(_ path: String) -> [String]? {
        guard path.utf8.starts(with: "/emulator/v1/projects/".utf8) else { return nil }
        let segments = URLCoding.segments(path)
        guard segments.count > 8, segments[5] == "databases", segments[7] == "documents" else { return nil }
        return segments
    }

    /// - Parameter segments: of the path, the first one empty.
    private func delete(_ segments: [String], _ exchange: HTTPExchange) {
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions())
        exchange.collectBody(limitBytes: Limits.transferRequestBytesMax) { [self] result in
            do throws(Status) {
                _ = try result.get()
                let name = try Self.name(segments)
                admin.background({ status in call.onLoop { call.finish(status) } }) {
                    delete(name) { result in
                        call.onLoop {
                            switch result {
                            case .success: call.respond(EmptyMessage())
                            case .failure(let status): call.finish(status)
                            }
                        }
                    }
                }
            } catch {
                call.finish(error)
            }
        }
    }

    private static func name(_ segments: [String]) throws(Status) -> ResourceName {
        var decoded: [String] = []
        for segment in segments.dropFirst(3) {
            // An encoded slash is no separator.
            guard let part = URLCoding.decode(segment), !part.utf8.contains(UInt8(ascii: "/")) else {
                throw .invalidArgument("The path segment \"\(segment)\" is not the name of a collection or document.")
            }
            decoded.append(part)
        }
        return try ResourceName(parsing: decoded.joined(separator: "/"))
    }

    private func delete(_ name: ResourceName, _ done: @escaping @Sendable (Result<Void, Status>) -> Void) {
        do throws(Status) {
            let database = try service.registry.database(name.database)
            // It was never written: there is nothing to delete, and nothing to create.
            if !database.exists { return done(.success(())) }
            try transfers.delete(try BulkDelete(database, at: name.path), TransferControl(), done)
        } catch {
            done(.failure(error))
        }
    }

    private static func isForm(_ type: String) -> Bool {
        let type = type.lowercased()
        return type.hasPrefix("application/x-www-form-urlencoded") || type.hasPrefix("multipart/")
    }

    /// The method that a path names; nil when it is another one's.
    private static func verb(_ path: String) -> Verb? {
        guard path.utf8.starts(with: "/emulator/v1/projects/".utf8) else { return nil }
        let segments = URLCoding.segments(path)
        guard segments.count == 5 || segments.count == 7 && segments[5] == "databases",
            let last = segments.last, let colon = last.lastIndex(of: ":")
        else { return nil }
        return Verb(rawValue: String(last[last.index(after: colon)...]))
    }

    /// A request's members, in either spelling. Its refusals are those of Google's emulator.
    private struct Request {
        private let members: MapValue

        private static let names = [
            "database", "export_directory", "exportDirectory", "export_name", "exportName", "collection_ids",
            "collectionIds", "namespace_ids", "namespaceIds",
        ]

        /// - Parameter body: nothing is an empty object.
        init(_ body: [UInt8]) throws(Status) {
            do throws(Status) {
                members = body.isEmpty ? MapValue() : try PlainJSON.object(body)
            } catch {
                throw Self.malformed
            }
            for member in members.fields where !Self.names.contains(member.name) { throw Self.malformed }
        }

        private static let malformed = Status.invalidArgument("Payload isn't valid for request.")

        private func member(_ name: String, _ camelCase: String) -> Value? { members[name] ?? members[camelCase] }

        private func string(_ name: String, _ camelCase: String) throws(Status) -> String {
            switch member(name, camelCase) {
            case nil, .null?: return ""
            case .string(let string)?: return string
            default: throw .invalidArgument("\(name) must be a string.")
            }
        }

        func database() throws(Status) -> DatabaseName {
            let name = try string("database", "database")
            guard name.hasPrefix("projects/") else {
                throw .invalidArgument("Database name \"\(name)\" lacks \"projects\" at index 0.")
            }
            return try DatabaseName(parsing: name)
        }

        func directory() throws(Status) -> String { try string("export_directory", "exportDirectory") }
        func name() throws(Status) -> String { try string("export_name", "exportName") }

        private func strings(_ name: String, _ camelCase: String) throws(Status) -> [String] {
            guard let value = member(name, camelCase), value != .null else { return [] }
            guard case .array(let elements) = value else { throw .invalidArgument("\(name) must be an array.") }
            var strings: [String] = []
            for element in elements {
                guard case .string(let string) = element else {
                    throw .invalidArgument("\(name) must be an array of strings.")
                }
                strings.append(string)
            }
            return strings
        }

        /// - Returns: nil for all.
        func collectionIDs() throws(Status) -> [String]? {
            let namespaces = try strings("namespace_ids", "namespaceIds")
            let ids = try strings("collection_ids", "collectionIds")
            if ids.isEmpty, namespaces.isEmpty {
                throw .failedPrecondition("collection_ids and namespace_ids cannot both be empty.")
            }
            return try AdminService.collectionIDs(ids, namespaces, ignoresRepeats: true)
        }
    }

    private func run(_ verb: Verb, _ request: Request, _ done: @escaping @Sendable (Result<Void, Status>) -> Void) {
        do throws(Status) {
            let database = try service.registry.database(try request.database())
            let control = TransferControl()
            switch verb {
            case .export: try export(database, request, control, done)
            case .import:
                let folder = try Self.folder(try request.directory())
                try transfers.importFolder(folder, to: database, ImportJob.Options(), control) { result in
                    done(result.map { _ in }.mapError(Self.asEmulator))
                }
            case .bulkDelete:
                try transfers.delete(try BulkDelete(database, try request.collectionIDs()), control, done)
            }
        } catch {
            done(.failure(error))
        }
    }

    private func export(
        _ database: Database, _ request: Request, _ control: TransferControl,
        _ done: @escaping @Sendable (Result<Void, Status>) -> Void
    ) throws(Status) {
        let directory = try request.directory()
        guard Folders.isFolder(directory) else {
            throw .failedPrecondition("export_directory must be a directory")
        }
        var name = try request.name()
        if name.isEmpty { name = "firestore_export_\(admin.clock.now().seconds)" }
        guard !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }), name != ".", name != ".." else {
            throw .invalidArgument("export_name must be the name of a folder.")
        }
        let path = Folders.withoutEnd(directory) + "/" + name
        try Self.checkReplaceable(path)
        let options = ExportJob.Options(path: path, name: name, replaces: true)
        try transfers.export(database, options, control) { result in done(result.map { _ in }) }
    }

    /// An export may be replaced, and nothing else.
    private static func checkReplaceable(_ path: String) throws(Status) {
        guard Folders.exists(path) else { return }
        guard Folders.isFolder(path) else { throw .failedPrecondition("\(path) is not a directory") }
        let names = try Folders.names(path)
        guard names.isEmpty || names.contains(where: { $0.hasSuffix(ExportFolderWriter.overallSuffix) }) else {
            throw .failedPrecondition("\(path) is not empty, and is no export that may be replaced.")
        }
    }

    /// The emulator's words for a damaged file, and behind them which one it is.
    private static func asEmulator(_ status: Status) -> Status {
        guard status.message.contains(": checksum differs.") else { return status }
        return Status(status.code, "Checksum doesn't validate. \(status.message)")
    }

    private static func folder(_ path: String) throws(Status) -> ExportFolder {
        do throws(Status) {
            return try ExportFolder(path)
        } catch {
            throw asEmulator(error) != error
                ? asEmulator(error) : .invalidArgument("Failed to parse overall export metadata file: \(error.message)")
        }
    }
}
