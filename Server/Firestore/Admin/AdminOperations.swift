import HearthHost
import HearthModel
import HearthDocuments
import HearthWire

/// Operations and locations. Source: google/longrunning/operations.proto, google/cloud/location/locations.proto.
extension AdminService {
    func getOperation(_ request: GetOperationRequest, _ answer: @escaping Answer<OperationMessage>)
        throws(Status)
    {
        answer(.success(try operations.operation(request.name)))
    }

    func listOperations(
        _ request: ListOperationsRequest, _ answer: @escaping Answer<ListOperationsResponse>
    ) throws(Status) {
        let filter = try OperationFilter(request.filter)
        // In the documentation of the proto the name is the collection's parent, in REST the collection itself.
        var name = request.name
        if name.hasSuffix("/operations") { name.removeLast("/operations".count) }
        let database = try DatabaseName(parsing: name)
        let start = try Self.pageStart(request.pageSize, request.pageToken, ["operations", name, request.filter])
        let page = try operations.operations(
            of: database, after: start.position, limit: start.count, where: filter.matches)
        let next = page.isMore ? page.operations.last.map { start.token(after: $0.name) } : nil
        answer(.success(ListOperationsResponse(operations: page.operations, nextPageToken: next ?? "")))
    }

    func waitOperation(_ request: WaitOperationRequest, _ answer: @escaping Answer<OperationMessage>) throws(Status) {
        let timeout = request.timeout ?? DurationMessage(seconds: Int64(Limits.operationWaitSecondsDefault))
        if timeout.seconds < 0 || timeout.nanos < 0 { throw .invalidArgument("The timeout must not be negative.") }
        let seconds = min(timeout.seconds, Int64(Limits.operationWaitSecondsMax))
        operations.wait(
            request.name, milliseconds: Int(seconds) * 1000 + Int(timeout.nanos) / 1_000_000, answer)
    }

    func deleteOperation(_ request: DeleteOperationRequest, _ answer: @escaping Answer<EmptyMessage>)
        throws(Status)
    {
        try operations.delete(request.name) { result in answer(result.map { EmptyMessage() }) }
    }

    func cancelOperation(_ request: CancelOperationRequest, _ answer: @escaping Answer<EmptyMessage>)
        throws(Status)
    {
        try operations.cancel(request.name)
        answer(.success(EmptyMessage()))
    }

    // MARK: Locations

    /// The only location is the server.
    private static func location(_ project: String, _ id: String) -> LocationMessage {
        LocationMessage(
            name: "projects/\(project)/locations/\(id)", locationId: id, displayName: "This server",
            metadata: AnyMessage(LocationMetadata()))
    }

    func listLocations(
        _ request: ListLocationsRequest, _ answer: @escaping Answer<ListLocationsResponse>
    ) throws(Status) {
        var name = request.name
        if name.hasSuffix("/locations") { name.removeLast("/locations".count) }
        let project = try Self.project(name)
        answer(
            .success(ListLocationsResponse(locations: [Self.location(project, DatabaseSettings.locationDefault)])))
    }

    func getLocation(_ request: GetLocationRequest, _ answer: @escaping Answer<LocationMessage>) throws(Status) {
        let segments = request.name.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count == 4, segments[0] == "projects", segments[2] == "locations",
            segments[3] == DatabaseSettings.locationDefault
        else { throw .notFound("Location \"\(request.name)\" not found.") }
        answer(.success(Self.location(String(segments[1]), String(segments[3]))))
    }
}

/// The filter of `ListOperations`: terms joined by AND, each a path of members of the operation's JSON form, `=` or `:`, and
/// a value, such as `done=false AND metadata.operationState=PROCESSING`.
private struct OperationFilter {
    private struct Term {
        var path: [String]
        var value: String
    }

    private static let termsMax = 10
    private var terms: [Term] = []

    /// - Throws: INVALID_ARGUMENT for anything else.
    init(_ string: String) throws(Status) {
        let words = string.split(separator: " ")
        for (index, word) in words.enumerated() {
            if index % 2 == 1 {
                if word == "AND", index + 1 < words.count { continue }
                throw Self.malformed(string)
            }
            guard let end = word.firstIndex(where: { $0 == "=" || $0 == ":" }), terms.count < Self.termsMax else {
                throw Self.malformed(string)
            }
            let path = word[..<end].split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            var value = word[word.index(after: end)...]
            if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") { value = value.dropFirst().dropLast() }
            let isKnown =
                path == ["done"] && (value == "true" || value == "false")
                || path.count == 2 && path[0] == "metadata" && !path[1].isEmpty
            guard isKnown, !value.isEmpty else { throw Self.malformed(string) }
            terms.append(Term(path: path, value: String(value)))
        }
    }

    private static func malformed(_ string: String) -> Status {
        .invalidArgument(
            "The filter may be done=true, done=false, metadata.MEMBER=VALUE, or several of them joined by AND; found "
                + "\"\(string)\".")
    }

    func matches(_ operation: OperationMessage) -> Bool {
        if terms.isEmpty { return true }
        guard let members = try? PlainJSON.object(operation.json(JSONOptions())) else { return false }
        return terms.allSatisfy { term in
            var value: Value? = .map(members)
            for name in term.path {
                guard case .map(let map)? = value else { return false }
                value = map[name]
            }
            switch value {
            case .boolean(let flag)?: return term.value == (flag ? "true" : "false")
            case .string(let string)?: return UTF8Order.equal(string, term.value)
            // proto3's JSON leaves out what is false.
            case nil: return term.path == ["done"] && term.value == "false"
            default: return false
            }
        }
    }
}
