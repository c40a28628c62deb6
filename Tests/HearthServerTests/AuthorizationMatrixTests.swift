@testable import HearthConcurrency
@testable import HearthRealtimeServer
@testable import HearthRules
@testable import HearthServer
import HearthModel
import HearthTestSupport
import HearthNetwork
import HearthDocuments
import HearthWire
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

/// Every method and route, for every kind of caller. The rows of the tables here are written by hand; the list of
/// required rows comes from the server's own tables, so that a method without a row fails.
@Suite struct AuthorizationMatrixTests {
    private static let secret = [UInt8](repeating: 7, count: 32)
    private static let database = "projects/p/databases/(default)"
    private static let documents = "\(database)/documents"

    private static func token(_ asker: Asker) throws -> String? {
        func minted(_ issuedAt: Int64, for audience: String? = nil) throws -> String {
            try TokenMint.mint(
                try .secret(secret), subject: "alice", audience: audience, issuedAt: issuedAt, seconds: 3600)
        }
        let now = SystemClock().now().seconds
        switch asker {
        case .nobody: return nil
        case .user: return try minted(now)
        case .foreignUser: return try minted(now, for: "other")
        case .expired: return try minted(now - 90_000)
        case .garbage: return "garbage"
        case .administrator, .readOnly, .otherProject, .ownProject: return credential(asker)
        }
    }

    private static func credential(_ asker: Asker) -> String { "a secret of the credential " + asker.rawValue }

    /// - Parameter rules: files with rules of Firestore and of the Realtime Database.
    private func served(
        isEmulator: Bool = false, rules: (firestore: String, realtime: String)? = nil
    ) async throws -> ServedServer {
        let key = try SigningKey.secret(Self.secret)
        return try await ServedServer { configuration in
            configuration.isEmulator = isEmulator
            if let rules {
                configuration.rules = ["(default)": rules.firestore]
                configuration.realtimeRules = rules.realtime
            }
            configuration.project = "p"
            configuration.identity.keys = [.init(id: nil, key: key)]
            configuration.identity.credentials = [
                .init(name: "all", secret: Self.credential(.administrator)),
                .init(name: "read", secret: Self.credential(.readOnly), isReadOnly: true),
                .init(name: "other", secret: Self.credential(.otherProject), project: "other"),
                .init(name: "own", secret: Self.credential(.ownProject), project: "p"),
            ]
        }
    }

    // MARK: gRPC

    private typealias Row = (demand: Demand, json: String)

    private static let write = #"{"update":{"name":"\#(documents)/c/x"}}"#
    private static let query = #"{"from":[{"collectionId":"c"}]}"#

    private static let dataRows: [String: Row] = [
        "GetDocument": (.readsData, #"{"name":"\#(documents)/c/d"}"#),
        "ListDocuments": (.readsData, #"{"parent":"\#(documents)","collectionId":"c"}"#),
        "BatchGetDocuments": (.readsData, #"{"database":"\#(database)","documents":["\#(documents)/c/d"]}"#),
        "RunQuery": (.readsData, #"{"parent":"\#(documents)","structuredQuery":\#(query)}"#),
        "RunAggregationQuery": (
            .readsData,
            #"{"parent":"\#(documents)","structuredAggregationQuery":{"structuredQuery":\#(query),"#
                + #""aggregations":[{"alias":"n","count":{}}]}}"#
        ),
        // Without locks for callers that may not write.
        "BeginTransaction": (.readsData, #"{"database":"\#(database)"}"#),
        "Rollback": (.readsData, #"{"database":"\#(database)","transaction":"AAAAAAAAAAA="}"#),
        "CreateDocument": (
            .writesData, #"{"parent":"\#(documents)","collectionId":"c","documentId":"new","document":{}}"#
        ),
        "UpdateDocument": (.writesData, #"{"document":{"name":"\#(documents)/c/x"}}"#),
        "DeleteDocument": (.writesData, #"{"name":"\#(documents)/c/x"}"#),
        "Commit": (.writesData, #"{"database":"\#(database)","writes":[\#(write)]}"#),
        "BatchWrite": (.writesData, #"{"database":"\#(database)","writes":[\#(write)]}"#),
        "PartitionQuery": (
            .administers(.reads),
            #"{"parent":"\#(documents)","partitionCount":"2","structuredQuery":{"from":[{"collectionId":"c","#
                + #""allDescendants":true}],"orderBy":[{"field":{"fieldPath":"__name__"}}]}}"#
        ),
        "ListCollectionIds": (.administers(.reads), #"{"parent":"\#(documents)"}"#),
        // It reads no data: the response is the same for everybody.
        "ExecutePipeline": (.nothing, #"{"database":"\#(database)"}"#),
        "Listen": (
            .readsData,
            #"{"database":"\#(database)","addTarget":{"targetId":1,"query":{"parent":"\#(documents)","#
                + #""structuredQuery":\#(query)}}}"#
        ),
        "Write": (.writesData, #"{"database":"\#(database)"}"#),
    ]

    private static let adminRows: [String: Row] = [
        "CreateIndex": (
            .administers(.writes),
            #"{"parent":"\#(database)/collectionGroups/c","index":{"queryScope":"COLLECTION","fields":["#
                + #"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"ASCENDING"}]}}"#
        ),
        "ListIndexes": (.administers(.reads), #"{"parent":"\#(database)/collectionGroups/-"}"#),
        "GetIndex": (.administers(.reads), #"{"name":"\#(database)/collectionGroups/c/indexes/CICAgIAB"}"#),
        "DeleteIndex": (.administers(.writes), #"{"name":"\#(database)/collectionGroups/c/indexes/CICAgIAB"}"#),
        "GetField": (.administers(.reads), #"{"name":"\#(database)/collectionGroups/c/fields/a"}"#),
        "UpdateField": (
            .administers(.writes), #"{"field":{"name":"\#(database)/collectionGroups/c/fields/a","indexConfig":{}}}"#
        ),
        "ListFields": (
            .administers(.reads),
            #"{"parent":"\#(database)/collectionGroups/-","filter":"indexConfig.usesAncestorConfig:false"}"#
        ),
        "CreateDatabase": (
            .administers(.writes),
            #"{"parent":"projects/p","databaseId":"new-one","database":{"type":"FIRESTORE_NATIVE","locationId":"local"}}"#
        ),
        "GetDatabase": (.administers(.reads), #"{"name":"\#(database)"}"#),
        "ListDatabases": (.administers(.reads), #"{"parent":"projects/p"}"#),
        "UpdateDatabase": (.administers(.writes), #"{"database":{"name":"projects/p/databases/absent"}}"#),
        "DeleteDatabase": (.administers(.writes), #"{"name":"projects/p/databases/absent"}"#),
        "BulkDeleteDocuments": (.administers(.writes), #"{"name":"\#(database)","collectionIds":["gone"]}"#),
        // They read and write files that all projects share.
        "ExportDocuments": (.changesServer, #"{"name":"\#(database)","outputUriPrefix":"x"}"#),
        "ImportDocuments": (.changesServer, #"{"name":"\#(database)","inputUriPrefix":"x"}"#),
        "GetOperation": (.administers(.reads), #"{"name":"\#(database)/operations/x"}"#),
        "WaitOperation": (.administers(.reads), #"{"name":"\#(database)/operations/x"}"#),
        "ListOperations": (.administers(.reads), #"{"name":"\#(database)"}"#),
        "DeleteOperation": (.administers(.writes), #"{"name":"\#(database)/operations/x"}"#),
        "CancelOperation": (.administers(.writes), #"{"name":"\#(database)/operations/x"}"#),
        "ListLocations": (.administers(.reads), #"{"name":"projects/p"}"#),
        "GetLocation": (.administers(.reads), #"{"name":"projects/p/locations/local"}"#),
    ]

    private struct Method {
        var path: String
        var request: any WireMessage.Type
        var row: Row
    }

    private static func name(ofPath path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    private func methods() throws -> [Method] {
        var methods: [Method] = []
        for method in FirestoreService.methods {
            let row = try #require(Self.dataRows[method.name], "\(method.name) has no row")
            methods.append(Method(path: "/\(FirestoreService.name)/\(method.name)", request: method.input, row: row))
        }
        for method in AdminMethods.all {
            let row = try #require(Self.adminRows[Self.name(ofPath: method.path)], "\(method.path) has no row")
            methods.append(Method(path: method.path, request: method.request, row: row))
        }
        return methods
    }

    /// The result of a call.
    private func outcome(_ method: Method, _ server: ServedServer, _ token: String?) async throws -> Outcome {
        let message = try encoded(method.request, method.row.json)
        switch Self.name(ofPath: method.path) {
        case "Listen":
            let answer = await server.call(method.path, [message], token: token) { bytes in
                let change = try? ListenResponse(protobuf: bytes).targetChange
                return change?.targetChangeType == .current || change?.targetChangeType == .remove
            }
            let last = try answer.messages.last.map { try ListenResponse(protobuf: $0) }
            switch last?.targetChange?.cause?.code {
            case 7: return .denied
            case 16: return .unauthenticated
            case nil: break
            default: return .passes
            }
            return Outcome(answer.status)
        case "Write":
            let opened = await server.call(method.path, [message], token: token) { _ in true }
            guard let first = opened.messages.first else { return Outcome(opened.status) }
            let token2 = Base64.encode(try WriteResponse(protobuf: first).streamToken)
            // A new stream: the first one has ended.
            let write = try encoded(
                WriteRequest.self, #"{"streamToken":"\#(token2)","writes":[\#(Self.write)]}"#)
            return Outcome(await server.call(method.path, [message, write], token: token).status)
        default: return Outcome(await server.call(method.path, [message], token: token).status)
        }
    }

    @Test func everyMethodOverGRPC() async throws {
        let server = try await served()
        defer { server.stop() }
        // Read-only callers need existing data.
        let first = try encoded(CommitRequest.self, try #require(Self.dataRows["Commit"]).json)
        let made = await server.call(
            "/\(FirestoreService.name)/Commit", [first], token: Self.credential(.administrator))
        try #require(made.status.code == .ok)
        for method in try methods() {
            for asker in Asker.allCases {
                let outcome = try await outcome(method, server, try Self.token(asker))
                var expected = method.row.demand.outcome(asker)
                // An invalid token fails before anything else.
                if case .nothing = method.row.demand, asker == .expired || asker == .garbage {
                    expected = .unauthenticated
                }
                #expect(outcome == expected, "\(method.path) for \(asker.rawValue)")
            }
        }
    }

    /// Local development without rules is open to everybody, except for the limits of a credential.
    @Test func everyMethodInLocalDevelopment() async throws {
        let server = try await served(isEmulator: true)
        defer { server.stop() }
        for method in try methods() {
            for asker in Asker.allCases {
                let outcome = try await outcome(method, server, try Self.token(asker))
                var expected = method.row.demand.outcome(asker)
                if asker == .nobody || asker == .user { expected = .passes }
                if asker == .foreignUser, expected == .denied { expected = .passes }
                if case .nothing = method.row.demand, asker == .expired || asker == .garbage {
                    expected = .unauthenticated
                }
                #expect(outcome == expected, "\(method.path) for \(asker.rawValue)")
            }
        }
    }

    /// Rules that let every user in: each method decides by the project of the token.
    @Test func everyMethodForUsersOfBothProjects() async throws {
        let folder = TemporaryFolder()
        folder.write(
            "firestore.rules",
            "service cloud.firestore { match /{path=**} { allow read, write: if request.auth != null; } }")
        folder.write("database.json", #"{"rules":{".read":"auth != null",".write":"auth != null"}}"#)
        let server = try await served(rules: (folder.path + "/firestore.rules", folder.path + "/database.json"))
        defer { server.stop() }
        let (user, foreigner) = (try Self.token(.user), try Self.token(.foreignUser))
        // As long as the database does not exist, and when it does.
        for _ in 0..<2 {
            for method in try methods() {
                let found = try await outcome(method, server, foreigner)
                #expect(Self.isRefusal(found, of: method.row.demand), "\(method.path): \(found)")
            }
            for route in try routes() {
                let answer = try await server.http(route.method, route.path, route.body, token: foreigner)
                let found = Outcome(http: answer.status)
                #expect(Self.isRefusal(found, of: route.demand), "\(route.method) \(route.path): \(found)")
            }
            for route in Self.realtimeRoutes {
                let answer = try await server.http(route.method, route.path, route.body, token: foreigner)
                #expect(answer.status == 401, "\(route.method) \(route.path): \(answer.status)")
            }
            let made = try await server.http("PATCH", "/v1/\(Self.documents)/c/d", "{}", token: user)
            #expect(made.status == 200)
            let set = try await server.http("PUT", "/a.json", "1", token: user)
            #expect(set.status == 200)
        }
        let listen = try #require(Self.dataRows["Listen"])
        #expect(try await outcome(ofChannel: "Listen", listen.json, server, user) == .passes)
        #expect(try await outcome(ofChannel: "Listen", listen.json, server, foreigner) == .unauthenticated)
        for method in try methods() {
            // Rules grant no access to other methods.
            switch method.row.demand {
            case .readsData, .writesData, .nothing: break
            default: continue
            }
            if Self.name(ofPath: method.path) == "BatchWrite" { continue }
            #expect(try await outcome(method, server, user) == .passes, "\(method.path)")
        }
    }

    /// Requests that need the whole server and also name a project may be refused for either.
    private static func isRefusal(_ outcome: Outcome, of demand: Demand) -> Bool {
        switch demand {
        case .changesServer: outcome == .denied || outcome == .unauthenticated
        default: outcome == demand.outcome(.foreignUser)
        }
    }

    // MARK: REST

    private struct Route {
        var method: String
        var path: String
        var demand: Demand
        var body = ""
        var headers: [HTTPHeader] = []
    }

    /// The methods of the admin services in their REST form.
    private static let adminRoutes: [String: (method: String, path: String)] = [
        "CreateIndex": ("POST", "\(database)/collectionGroups/c/indexes"),
        "ListIndexes": ("GET", "\(database)/collectionGroups/-/indexes"),
        "GetIndex": ("GET", "\(database)/collectionGroups/c/indexes/CICAgIAB"),
        "DeleteIndex": ("DELETE", "\(database)/collectionGroups/c/indexes/CICAgIAB"),
        "GetField": ("GET", "\(database)/collectionGroups/c/fields/a"),
        "UpdateField": ("PATCH", "\(database)/collectionGroups/c/fields/a"),
        "ListFields": ("GET", "\(database)/collectionGroups/-/fields?filter=indexConfig.usesAncestorConfig:false"),
        "CreateDatabase": ("POST", "projects/p/databases?databaseId=new-two"),
        "GetDatabase": ("GET", database),
        "ListDatabases": ("GET", "projects/p/databases"),
        "UpdateDatabase": ("PATCH", "projects/p/databases/absent"),
        "DeleteDatabase": ("DELETE", "projects/p/databases/absent"),
        "BulkDeleteDocuments": ("POST", "\(database):bulkDeleteDocuments"),
        "ExportDocuments": ("POST", "\(database):exportDocuments"),
        "ImportDocuments": ("POST", "\(database):importDocuments"),
        "GetOperation": ("GET", "\(database)/operations/x"),
        "WaitOperation": ("POST", "\(database)/operations/x:wait"),
        "ListOperations": ("GET", "\(database)/operations"),
        "DeleteOperation": ("DELETE", "\(database)/operations/x"),
        "CancelOperation": ("POST", "\(database)/operations/x:cancel"),
        "ListLocations": ("GET", "projects/p/locations"),
        "GetLocation": ("GET", "projects/p/locations/local"),
    ]

    /// The REST form of a method after a colon.
    private static func body(of method: RESTRouter.CustomMethod) throws -> (demand: Demand, json: String)? {
        // Neither is served over REST, for any caller.
        if method == .listen || method == .write { return nil }
        let name = method.rawValue.prefix(1).uppercased() + method.rawValue.dropFirst()
        let row = try #require(dataRows[name == "BatchGet" ? "BatchGetDocuments" : name], "\(name) has no row")
        return (row.demand, row.json)
    }

    private func routes() throws -> [Route] {
        let root = "/v1/\(Self.documents)"
        var routes = [
            Route(method: "GET", path: "\(root)/c/d", demand: .readsData),
            Route(method: "GET", path: "\(root)/c", demand: .readsData),
            Route(method: "POST", path: "\(root)/c?documentId=rest", demand: .writesData, body: "{}"),
            Route(method: "PATCH", path: "\(root)/c/x", demand: .writesData, body: "{}"),
            Route(method: "DELETE", path: "\(root)/c/x", demand: .writesData),
            Route(method: "GET", path: "/metrics", demand: .administersServer),
            Route(method: "GET", path: "/hearth/v1/triggers", demand: .administersServer),
            Route(method: "GET", path: "/hearth/v1/triggers/t", demand: .administersServer),
            Route(method: "PUT", path: "/hearth/v1/triggers/t", demand: .changesServer, body: "{}"),
            Route(method: "DELETE", path: "/hearth/v1/triggers/t", demand: .changesServer),
            Route(method: "GET", path: "/hearth/v1/triggers/t/dead-letters", demand: .administersServer),
            Route(method: "DELETE", path: "/hearth/v1/triggers/t/dead-letters", demand: .changesServer),
            Route(method: "POST", path: "/hearth/v1/triggers/t/replay", demand: .changesServer, body: "{}"),
            Route(method: "POST", path: "/hearth/v1/triggers/t/retry", demand: .changesServer),
            Route(method: "GET", path: "/hearth/v1/backup", demand: .changesServer),
            Route(method: "GET", path: "/hearth/v1/changes", demand: .administers(.reads)),
            Route(method: "GET", path: "/hearth/v1/changes/p/(default)?snapshot=true", demand: .administers(.reads)),
            Route(method: "POST", path: "/hearth/v1/triggers/t/test", demand: .changesServer, body: "{}"),
            Route(method: "GET", path: "/v1/\(Self.database)/bundles", demand: .administers(.reads)),
            Route(method: "GET", path: "/v1/\(Self.database)/bundles/b", demand: .administers(.reads)),
            Route(
                method: "PUT", path: "/v1/\(Self.database)/bundles/b", demand: .administers(.writes),
                body: #"{"queries":{"all":{"collection":"c"}}}"#),
            Route(method: "GET", path: "/bundles/b", demand: .administers(.reads)),
            Route(method: "DELETE", path: "/v1/\(Self.database)/bundles/b2", demand: .administers(.writes)),
            Route(method: "GET", path: "/v1/projects/p/rulesets", demand: .administers(.reads)),
            Route(method: "POST", path: "/v1/projects/p/rulesets", demand: .administers(.writes), body: "{}"),
            Route(method: "GET", path: "/v1/projects/p/rulesets/r", demand: .administers(.reads)),
            Route(method: "DELETE", path: "/v1/projects/p/rulesets/r", demand: .administers(.writes)),
            Route(method: "POST", path: "/v1/projects/p/rulesets/r:test", demand: .administers(.reads), body: "{}"),
            Route(method: "POST", path: "/v1/projects/p:test", demand: .administers(.reads), body: "{}"),
            Route(method: "GET", path: "/v1/projects/p/releases", demand: .administers(.reads)),
            Route(method: "POST", path: "/v1/projects/p/releases", demand: .administers(.writes), body: "{}"),
            Route(method: "GET", path: "/v1/projects/p/releases/a/b", demand: .administers(.reads)),
            Route(method: "PATCH", path: "/v1/projects/p/releases/a/b", demand: .administers(.writes), body: "{}"),
            Route(method: "DELETE", path: "/v1/projects/p/releases/a/b", demand: .administers(.writes)),
            Route(method: "GET", path: "/v1/projects/p/releases/a:getExecutable", demand: .administers(.reads)),
            Route(method: "GET", path: "/v1/projects/p/services/s", demand: .administers(.reads)),
            Route(
                method: "POST", path: "/v1/projects/p:testIamPermissions", demand: .administers(.reads), body: "{}"),
            Route(method: "GET", path: "/v1beta1/projects/p", demand: .administers(.reads)),
        ]
        for method in RESTRouter.CustomMethod.allCases {
            guard let (demand, json) = try Self.body(of: method) else { continue }
            routes.append(Route(method: "POST", path: "\(root):\(method.rawValue)", demand: demand, body: json))
        }
        for method in AdminMethods.all {
            let name = Self.name(ofPath: method.path)
            let (verb, path) = try #require(Self.adminRoutes[name], "\(name) has no route")
            let row = try #require(Self.adminRows[name])
            var body = ""
            switch name {
            case "CreateIndex":
                body =
                    #"{"queryScope":"COLLECTION","fields":[{"fieldPath":"a","order":"ASCENDING"},"#
                    + #"{"fieldPath":"z","order":"ASCENDING"}]}"#
            case "CreateDatabase": body = #"{"type":"FIRESTORE_NATIVE","locationId":"local"}"#
            case "BulkDeleteDocuments": body = #"{"collectionIds":["gone"]}"#
            default: break
            }
            routes.append(Route(method: verb, path: "/v1/\(path)", demand: row.demand, body: body))
        }
        return routes
    }

    @Test func everyRouteOverREST() async throws {
        let server = try await served()
        defer { server.stop() }
        let saved = try await server.http(
            "PUT", "/v1/\(Self.database)/bundles/b", #"{"queries":{"all":{"collection":"c"}}}"#,
            token: Self.credential(.administrator))
        try #require(saved.status == 200)
        for route in try routes() {
            for asker in Asker.allCases {
                let answer = try await server.http(
                    route.method, route.path, route.body, token: try Self.token(asker))
                var expected = route.demand.outcome(asker)
                if case .nothing = route.demand, asker == .expired || asker == .garbage {
                    expected = .unauthenticated
                }
                let outcome = Outcome(http: answer.status)
                #expect(
                    asker == .foreignUser ? Self.isRefusal(outcome, of: route.demand) : outcome == expected,
                    "\(route.method) \(route.path) for \(asker.rawValue): \(answer.status) \(answer.body)")
            }
        }
    }

    /// The Realtime Database has its own messages and codes.
    @Test func everyMethodOfTheRealtimeDatabaseOverREST() async throws {
        let server = try await served()
        defer { server.stop() }
        for route in Self.realtimeRoutes {
            for asker in Asker.allCases {
                let answer = try await server.http(route.method, route.path, route.body, token: try Self.token(asker))
                let expected = route.demand.outcome(asker)
                // It answers 401 for both.
                let isRefused = answer.status == 401 || answer.status == 403
                #expect(
                    isRefused == (expected != .passes),
                    "\(route.method) \(route.path) for \(asker.rawValue): \(answer.status) \(answer.body)")
            }
        }
    }

    private static var realtimeRoutes: [Route] {
        [
            Route(method: "GET", path: "/a.json", demand: .readsData),
            Route(method: "GET", path: "/a.json?shallow=true", demand: .readsData),
            Route(
                method: "GET", path: "/a.json?orderBy=%22$key%22&limitToFirst=1", demand: .readsData),
            Route(method: "PUT", path: "/a.json", demand: .writesData, body: "1"),
            Route(method: "PATCH", path: "/a.json", demand: .writesData, body: #"{"b":1}"#),
            Route(method: "POST", path: "/a.json", demand: .writesData, body: "1"),
            Route(method: "DELETE", path: "/a.json", demand: .writesData),
            Route(method: "POST", path: "/a.json?x-http-method-override=PUT", demand: .writesData, body: "1"),
            Route(method: "GET", path: "/.settings/rules.json", demand: .administers(.reads)),
            Route(
                method: "PUT", path: "/.settings/rules.json", demand: .administers(.writes),
                body: #"{"rules":{".read":false,".write":false}}"#),
        ]
    }

    /// Routes for local development do not exist on other servers, and all other routes are for everybody.
    @Test func routesWithoutIdentity() async throws {
        let server = try await served()
        defer { server.stop() }
        for asker in Asker.allCases {
            let token = try Self.token(asker)
            for (method, path) in [
                ("DELETE", "/emulator/v1/\(Self.documents)"), ("PUT", "/emulator/v1/projects/p:securityRules"),
                ("GET", "/emulator/v1/projects/p:ruleCoverage"), ("POST", "/shutdown"),
                ("PUT", "/emulator/v1/projects/p/triggers/k"), ("POST", "/emulator/v1/projects/p:export"),
                ("POST", "/emulator/v1/projects/p:import"), ("POST", "/emulator/v1/projects/p:bulkDelete"),
                ("POST", "/emulator/v1/\(Self.database):export"),
                ("POST", "/emulator/v1/projects/p/eventarcTrigger?eventarcTriggerId=k"),
            ] {
                #expect(try await server.http(method, path, "{}", token: token).status == 404, "\(method) \(path)")
            }
            // Its body has the credential.
            let form = [HTTPHeader("content-type", "application/x-www-form-urlencoded")]
            let refused = try await server.http(
                "POST", "/oauth2/v3/token", "grant_type=refresh_token&refresh_token=x", token: token, headers: form)
            #expect(refused.status == 400)
            for path in ["/", "/healthz", "/readyz"] {
                #expect(try await server.http("GET", path, token: token).status == 200, "\(path)")
            }
            let health = await server.call("/grpc.health.v1.Health/Check", [[]], token: token)
            #expect(health.status.code == .ok)
        }
    }

    // MARK: WebChannel

    private func encode(_ string: String) -> String {
        string.utf8.map { byte in
            let isPlain = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }

    /// Begins a session with one message, and reads until its result is known.
    private func outcome(
        ofChannel name: String, _ message: String, _ server: ServedServer, _ token: String?
    ) async throws -> Outcome {
        let path = "/google.firestore.v1.Firestore/\(name)/channel"
        let headers = token.map { "headers=" + encode("Authorization:Bearer \($0)\r\n") + "&" } ?? ""
        let database = encode(Self.database)
        let began = try await server.http(
            "POST", "\(path)?VER=8&database=\(database)&RID=1&CVER=22&t=1",
            headers + "count=1&ofs=0&req0___data__=" + encode(message),
            headers: [HTTPHeader("content-type", "application/x-www-form-urlencoded")])
        if began.status != 200 { return Outcome(http: began.status) }
        let parts = began.body.split(separator: "\"", omittingEmptySubsequences: false)
        guard parts.count > 3 else { throw Status.internalError("no session: \(began.body)") }
        let session = String(parts[3])
        var known = 0
        // A stream sends something immediately; each request fetches one piece.
        for _ in 0..<20 {
            let response = try await server.http(
                "GET", "\(path)?VER=8&database=\(database)&RID=rpc&SID=\(session)&AID=\(known)&CI=1&TYPE=xmlhttp&t=1")
            if response.body.contains("PERMISSION_DENIED") || response.body.contains("\"code\": 7")
                || response.body.contains("\"code\":7")
            {
                return .denied
            }
            if response.body.contains("UNAUTHENTICATED") || response.body.contains("\"code\": 16")
                || response.body.contains("\"code\":16")
            {
                return .unauthenticated
            }
            if response.body.contains("CURRENT") || response.body.contains("streamToken") { return .passes }
            known += 1
        }
        throw Status.internalError("the stream did not report its result")
    }

    @Test func bothStreamsOverWebChannel() async throws {
        let server = try await served()
        defer { server.stop() }
        // Reading does not create a database, and a read-only caller does not get a missing one.
        let made = try await server.http(
            "PATCH", "/v1/\(Self.documents)/c/d", "{}", token: Self.credential(.administrator))
        #expect(made.status == 200)
        for asker in Asker.allCases {
            let listen = try #require(Self.dataRows["Listen"])
            let outcome = try await outcome(ofChannel: "Listen", listen.json, server, try Self.token(asker))
            #expect(outcome == listen.demand.outcome(asker), "Listen for \(asker.rawValue)")
        }
    }

    // MARK: Completeness

    /// The families of routes; a new family needs rows above, and its name here.
    @Test func everyFamilyOfRoutesHasRows() async throws {
        let server = try await served(isEmulator: true)
        defer { server.stop() }
        #expect(
            server.server.routeFamilies == [
                "AdminHTTP", "BackupHTTP", "BundleHTTP", "ChangesHTTP", "EmulatorTransferHTTP", "EmulatorTriggersHTTP",
                "FirebaseToolsHTTP", "LongPollHTTP", "MetricsHTTP", "RealtimeHTTP", "RealtimeSocketHTTP",
                "RulesAdminHTTP", "RulesHTTP",
                "TriggersHTTP",
                "WebChannelHTTP",
            ])
    }
}
