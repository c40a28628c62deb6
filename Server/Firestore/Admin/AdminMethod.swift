import HearthModel
import HearthWire

/// One method of the admin services: its implementation, and the permission that its caller needs.
///
/// `effect` and `resource` have no defaults: a method that does not state its effect, or its project, does not compile.
/// Methods run only through `AdminService.perform`, which checks both.
struct AdminMethod<Request: WireMessage & Sendable, Response: WireMessage & Sendable>: AnyAdminMethod {
    package typealias Body =
        @Sendable (AdminService) -> (Request, @escaping AdminService.Answer<Response>) throws(Status) -> Void

    /// The gRPC path.
    let path: String
    let effect: AdministratorEffect
    /// The name in a request that identifies the project: `projects/P`, or the name of a resource in that project.
    let resource: @Sendable (Request) -> String
    /// Whether it reads or writes files that all projects share: not for administrators of one project.
    let concernsServer: Bool
    let body: Body

    init(
        _ path: String, _ effect: AdministratorEffect, resource: @escaping @Sendable (Request) -> String,
        concernsServer: Bool = false, _ body: @escaping Body
    ) {
        self.path = path
        self.effect = effect
        self.resource = resource
        self.concernsServer = concernsServer
        self.body = body
    }

    var request: any WireMessage.Type { Request.self }

    /// Whether the method reads a database, which may have to be opened first: not on an event loop.
    var concernsDatabase: Bool { !path.utf8.starts(with: AdminMethods.locations.utf8) }

    func serve(
        _ message: [UInt8], _ admin: AdminService, _ permit: AdminService.Permit,
        _ answer: @escaping AdminService.BytesAnswer
    ) throws(Status) {
        try admin.perform(self, try Request(protobuf: message), permit) { answer($0.map { $0.protobuf() }) }
    }
}

/// A method on encoded messages, for gRPC.
protocol AnyAdminMethod: Sendable {
    var path: String { get }
    /// The type of its messages.
    var request: any WireMessage.Type { get }
    var effect: AdministratorEffect { get }
    func serve(
        _ message: [UInt8], _ admin: AdminService, _ permit: AdminService.Permit,
        _ answer: @escaping AdminService.BytesAnswer
    ) throws(Status)
}

extension AdminService {
    typealias BytesAnswer = @Sendable (Result<[UInt8], Status>) -> Void
    /// Fails with PERMISSION_DENIED when the caller does not have the permission for this resource and effect.
    typealias Permit = (_ resource: AdministeredResource, _ effect: AdministratorEffect) throws(Status) -> Void

    /// Runs a method for a caller, for both gRPC and REST.
    func perform<Request, Response>(
        _ method: AdminMethod<Request, Response>, _ request: Request, _ permit: Permit,
        _ answer: @escaping Answer<Response>
    ) throws(Status) {
        let project = AdministeredResource.project(Self.project(named: method.resource(request)))
        try permit(method.concernsServer ? .server : project, method.effect)
        if method.concernsDatabase {
            inBackground(of: answer) { () throws(Status) in try method.body(self)(request, answer) }
        } else {
            try method.body(self)(request, answer)
        }
    }

    /// The project in a resource name; empty, which is never a project's name, when it has none.
    private static func project(named name: String) -> String {
        let segments = name.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
        guard segments.count >= 2, segments[0].elementsEqual("projects".utf8) else { return "" }
        return String(Substring(segments[1]))
    }
}
