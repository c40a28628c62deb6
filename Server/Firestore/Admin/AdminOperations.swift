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
        if !request.filter.isEmpty { throw .invalidArgument("Filters on operations are not supported.") }
        // In the documentation of the proto the name is the collection's parent, in REST the collection itself.
        var name = request.name
        if name.hasSuffix("/operations") { name.removeLast("/operations".count) }
        let database = try DatabaseName(parsing: name)
        let page = try Self.page(
            operations.operations(of: database), key: \.name, size: request.pageSize, token: request.pageToken,
            list: ["operations", name])
        answer(.success(ListOperationsResponse(operations: page.items, nextPageToken: page.next)))
    }

    func deleteOperation(_ request: DeleteOperationRequest, _ answer: @escaping Answer<EmptyMessage>)
        throws(Status)
    {
        try operations.delete(request.name)
        answer(.success(EmptyMessage()))
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
