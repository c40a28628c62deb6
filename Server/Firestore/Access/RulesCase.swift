import HearthHost
import HearthConcurrency
import HearthModel
import HearthRules
import HearthDocuments
import HearthWire

/// One case of a rules test, in the format of the public Rules test API: a request, the stored document, mocks of
/// functions, and the expectation. Three things are extensions: `documents`, other stored documents by path; `writes`, a
/// whole batch instead of one request; and `{"timestampValue": TIME}` for a timestamp in data, which JSON has no form for.
package struct RulesCase {
    /// The name in the file.
    package let name: String
    package let expectsAllow: Bool
    private var requests: [RulesRequest] = []
    private var before: [ResourcePath: MapValue] = [:]
    private var after: [ResourcePath: MapValue?] = [:]
    /// The document at every path that has none of its own.
    private var anywhere: MapValue?
    /// How much is reported of the values of expressions.
    let reportLevel: ReportLevel
    private let isPlainPath: Bool
    /// The calls that have a result; nil where all have one.
    private var mocks: Mocks?

    enum ReportLevel: String {
        case none = "NONE"
        case full = "FULL"
        case visited = "VISITED"
    }

    /// A call of a function that was mocked.
    struct Call {
        var function: String
        var path: String
    }

    fileprivate struct Mocks {
        /// Functions that are mocked for whatever path.
        var functions: Set<String> = []
        var paths: [String: Set<ResourcePath>] = [:]

        func answer(_ function: String, _ path: ResourcePath) -> Bool {
            functions.contains(function) || paths[function]?.contains(path) == true
        }
    }

    package struct Outcome {
        package var isAllowed: Bool
        /// The result of each request.
        package var messages: [String]
        /// The `allow` statements that were evaluated for all requests.
        var outcomes: [RulesOutcome] = []
        /// The calls of mocked functions, in their order.
        var calls: [Call] = []
    }

    /// Reads cases: a list of cases, or an object with `testCases`, at the top level or in `testSuite`.
    /// - Throws: INVALID_ARGUMENT with the number of the case.
    package static func parse(_ bytes: [UInt8]) throws(Status) -> [RulesCase] {
        var root = try PlainJSON.any(bytes)
        if case .map(let map) = root, let suite = map["testSuite"] { root = suite }
        if case .map(let map) = root, let cases = map["testCases"] { root = cases }
        if case .map = root { root = .array([root]) }
        guard case .array(let elements) = root else { throw .invalidArgument("Expected a list of test cases.") }
        return try cases(elements, ofService: false)
    }

    /// - Parameter ofService: as in the Rules test API, functions without a mock have no result, unless a case has `documents`.
    ///   Otherwise documents that a case doesn't name are absent.
    /// - Throws: INVALID_ARGUMENT with the number of the case.
    static func cases(_ elements: [Value], ofService: Bool) throws(Status) -> [RulesCase] {
        var cases: [RulesCase] = []
        for (index, element) in elements.enumerated() {
            guard case .map(let members) = element else {
                throw .invalidArgument("Case \(index + 1) is not an object.")
            }
            do throws(Status) {
                cases.append(try RulesCase(members, number: index + 1, ofService: ofService))
            } catch {
                throw .invalidArgument("Case \(index + 1): \(error.message)")
            }
        }
        return cases
    }

    private init(_ members: MapValue, number: Int, ofService: Bool) throws(Status) {
        if case .string(let string)? = members["name"] { name = string } else { name = "case \(number)" }
        isPlainPath = try Self.isPlainPath(members["pathEncoding"])
        reportLevel = try Self.reportLevel(members["expressionReportLevel"])
        if ofService, members["documents"] == nil { mocks = Mocks() }
        switch members["expectation"] {
        case .string("ALLOW")?: expectsAllow = true
        case .string("DENY")?: expectsAllow = false
        default: throw .invalidArgument("\"expectation\" is ALLOW or DENY.")
        }
        if case .map(let documents)? = members["documents"] {
            for field in documents.fields {
                guard case .map(let fields) = field.value else {
                    throw .invalidArgument("\(field.name) has no fields.")
                }
                before[try path(field.name).path] = try Self.typed(fields)
            }
        }
        try readMocks(members["functionMocks"])
        guard case .map(let request)? = members["request"] else { throw .invalidArgument("\"request\" is missing.") }
        if case .array(let writes)? = members["writes"] {
            try readBatch(writes, request)
        } else {
            try readRequest(request, members["resource"])
        }
    }

    // MARK: Members

    /// Whether paths are as they are, not percent-encoded.
    private static func isPlainPath(_ value: Value?) throws(Status) -> Bool {
        switch value {
        case nil, .null?, .string("ENCODING_UNSPECIFIED")?, .string("URL_ENCODED")?: return false
        case .string("PLAIN")?: return true
        default: throw .invalidArgument("\"pathEncoding\" is URL_ENCODED or PLAIN.")
        }
    }

    private static func reportLevel(_ value: Value?) throws(Status) -> ReportLevel {
        switch value {
        case nil, .null?, .string("LEVEL_UNSPECIFIED")?: return .none
        case .string(let string)?:
            if let level = ReportLevel(rawValue: string) { return level }
            fallthrough
        default: throw .invalidArgument("\"expressionReportLevel\" is NONE, VISITED or FULL.")
        }
    }

    /// `/databases/D/documents/…`, or only the path after that.
    private func path(_ string: String) throws(Status) -> (database: String, path: ResourcePath) {
        var segments = string.split(separator: "/").map(String.init)
        if !isPlainPath { segments = segments.map { URLCoding.decode($0) ?? $0 } }
        var database = DatabaseName.defaultDatabase
        if segments.count >= 3, segments[0] == "databases", segments[2] == "documents" {
            database = segments[1]
            segments.removeFirst(3)
        }
        if segments.isEmpty { throw .invalidArgument("The path \"\(string)\" names no document.") }
        return (database, ResourcePath(segments))
    }

    private static func data(_ value: Value?) throws(Status) -> MapValue? {
        guard case .map(let resource)? = value else { return nil }
        if case .map(let data)? = resource["data"] { return try typed(data) }
        return MapValue()
    }

    /// The fields with timestamps in place of maps that have `timestampValue` as their only member.
    private static func typed(_ fields: MapValue) throws(Status) -> MapValue {
        var typed: [MapValue.Field] = []
        for field in fields.fields { typed.append(.init(name: field.name, value: try Self.typed(field.value))) }
        return MapValue(typed)
    }

    private static func typed(_ value: Value) throws(Status) -> Value {
        switch value {
        case .map(let map):
            guard map.fields.count == 1, let time = map["timestampValue"] else { return .map(try typed(map)) }
            guard case .string(let string) = time else {
                throw .invalidArgument("\"timestampValue\" is not an RFC 3339 time.")
            }
            return .timestamp(try timestamp(string, "timestampValue"))
        case .array(let elements):
            var typed: [Value] = []
            for element in elements { typed.append(try Self.typed(element)) }
            return .array(typed)
        default: return value
        }
    }

    private static func timestamp(_ string: String, _ member: String) throws(Status) -> Timestamp {
        guard let instant = RFC3339.parse(string),
            let time = Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds))
        else { throw .invalidArgument("\"\(member)\" is not an RFC 3339 time.") }
        return time
    }

    private mutating func readMocks(_ mocks: Value?) throws(Status) {
        guard case .array(let mocks)? = mocks else { return }
        for case .map(let mock) in mocks {
            guard case .map(let result)? = mock["result"] else { throw .invalidArgument("A mock has no \"result\".") }
            try readFunction(mock, result)
            var fields: MapValue?
            switch result["value"] {
            case .boolean(true)?: fields = MapValue()
            case .map?: fields = try Self.data(result["value"])
            default: fields = nil
            }
            guard let fields else { continue }
            guard case .array(let arguments)? = mock["args"], case .map(let argument)? = arguments.first else {
                throw .invalidArgument("A mock has no \"args\".")
            }
            if case .string(let string)? = argument["exactValue"] {
                let path = try self.path(string).path
                // An exists() next to a get() adds nothing.
                if before[path] == nil || !fields.isEmpty { before[path] = fields }
            } else {
                anywhere = fields
            }
        }
    }

    /// Notes which calls a mock answers.
    private mutating func readFunction(_ mock: MapValue, _ result: MapValue) throws(Status) {
        if mocks == nil { return }
        guard case .string(let function)? = mock["function"],
            ["get", "exists", "getAfter", "existsAfter"].contains(function)
        else { throw .invalidArgument("The \"function\" of a mock is get, exists, getAfter or existsAfter.") }
        // `{"undefined": {}}`
        if result["value"] == nil { return }
        guard case .array(let arguments)? = mock["args"], case .map(let argument)? = arguments.first else {
            throw .invalidArgument("A mock has no \"args\".")
        }
        if case .string(let string)? = argument["exactValue"] {
            let path = try self.path(string).path
            mocks?.paths[function, default: []].insert(path)
        } else {
            mocks?.functions.insert(function)
        }
    }

    private static func auth(_ request: MapValue) -> RulesAuth? {
        guard case .map(let auth)? = request["auth"] else { return nil }
        var uid = ""
        if case .string(let string)? = auth["uid"] { uid = string }
        if case .map(let token)? = auth["token"] { return RulesAuth(uid: uid, token: token) }
        return RulesAuth(uid: uid)
    }

    private static func time(_ request: MapValue) throws(Status) -> Timestamp {
        guard case .string(let string)? = request["time"] else { return FieldTransform.serverTime(SystemClock().now()) }
        return try timestamp(string, "time")
    }

    private mutating func readRequest(_ request: MapValue, _ resource: Value?) throws(Status) {
        guard case .string(let string)? = request["path"] else {
            throw .invalidArgument("The request has no \"path\".")
        }
        guard case .string(let method)? = request["method"], let method = RulesMethod(rawValue: method) else {
            throw .invalidArgument("\"method\" is get, list, create, update or delete.")
        }
        var (database, path) = try path(string)
        var rulesRequest = RulesRequest(
            method: method, database: database, path: path, auth: Self.auth(request), time: try Self.time(request))
        if method == .list {
            if path.isDocument { path = ResourcePath(Array(path.segments.dropLast())) }
            // What the query filters for is given as a document: each of its fields is a condition with `==`.
            let conditions = (try Self.data(resource)?.fields ?? []).map {
                RulesQuery.Constraint(FieldPath($0.name), .equal, $0.value)
            }
            var query = RulesQuery(collectionID: path.segments.last ?? "", branches: [conditions])
            if case .map(let members)? = request["query"] {
                if case .integer(let limit)? = members["limit"] { query.limit = Int(limit) }
                if case .integer(let offset)? = members["offset"] { query.offset = Int(offset) }
            }
            rulesRequest.path = path
            rulesRequest.query = query
        } else {
            let stored = try Self.data(resource) ?? before[path]
            if let stored { before[path] = stored }
            rulesRequest.resource = stored.map { RulesDocument(path: path, fields: $0) }
            switch method {
            case .create, .update:
                let fields = try Self.data(request["resource"]) ?? MapValue()
                after[path] = .some(fields)
                rulesRequest.newResource = RulesDocument(path: path, fields: fields)
            case .delete: after[path] = .some(nil)
            case .get, .list: break
            }
        }
        requests = [rulesRequest]
    }

    private mutating func readBatch(_ writes: [Value], _ request: MapValue) throws(Status) {
        let auth = Self.auth(request)
        let time = try Self.time(request)
        var paths: [(database: String, path: ResourcePath)] = []
        for write in writes {
            guard case .map(let write) = write, case .string(let string)? = write["path"] else {
                throw .invalidArgument("A write has no \"path\".")
            }
            let location = try path(string)
            paths.append(location)
            if case .map(let fields)? = write["data"] {
                after[location.path] = .some(try Self.typed(fields))
            } else {
                after[location.path] = .some(nil)
            }
        }
        requests = paths.map { database, path in
            let stored = before[path]
            let new = after[path] ?? nil
            return RulesRequest(
                method: new == nil ? .delete : stored == nil ? .create : .update, database: database, path: path,
                auth: auth,
                time: time, resource: stored.map { RulesDocument(path: path, fields: $0) },
                newResource: new.map { RulesDocument(path: path, fields: $0) })
        }
    }

    // MARK: Judgement

    /// - Parameter observer: notified of every evaluation.
    /// - Throws: the error that prevents a judgement.
    package func run(_ ruleset: Ruleset, observer: (any RulesObserver)? = nil) throws(Status) -> Outcome {
        let reader = CaseReader(before, after, anywhere, mocks, database: requests.first?.database ?? "")
        let access = RulesAccess(
            total: requests.count > 1 ? RulesLimits.accessesPerBatch : RulesLimits.accessesPerOperation)
        var outcome = Outcome(isAllowed: true, messages: [])
        for request in requests {
            let verdict = ruleset.decide(request, reader, access, observer: observer)
            if let failure = verdict.failure { throw failure }
            outcome.isAllowed = outcome.isAllowed && verdict.isAllowed
            outcome.outcomes += verdict.outcomes
            let path = "\(request.method.rawValue) \(request.path.string)"
            let reason = verdict.message.split(separator: "\n").joined(separator: " ")
            outcome.messages.append(verdict.isAllowed ? "\(path): allowed" : "\(path): denied: \(reason)")
        }
        outcome.calls = reader.calls
        return outcome
    }
}

private final class CaseReader: DocumentReader {
    private let before: [ResourcePath: MapValue]
    private let after: [ResourcePath: MapValue?]
    private let anywhere: MapValue?
    private let mocks: RulesCase.Mocks?
    private let database: String
    private(set) var calls: [RulesCase.Call] = []

    init(
        _ before: [ResourcePath: MapValue], _ after: [ResourcePath: MapValue?], _ anywhere: MapValue?,
        _ mocks: RulesCase.Mocks?, database: String
    ) {
        self.mocks = mocks
        self.database = database
        self.before = before
        self.after = after
        self.anywhere = anywhere
    }

    func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? {
        var fields = before[path] ?? anywhere
        if isAfter, let written = after[path] { fields = written }
        return fields.map { RulesDocument(path: path, fields: $0) }
    }

    func answers(_ function: String, _ path: ResourcePath) -> Bool {
        guard let mocks else { return true }
        guard mocks.answer(function, path) else { return false }
        let segments = ["databases", database, "documents"] + path.segments
        calls.append(
            RulesCase.Call(function: function, path: "/" + segments.map(URLCoding.encode).joined(separator: "/")))
        return true
    }
}
