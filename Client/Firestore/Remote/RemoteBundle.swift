internal import Foundation
internal import HearthApp
internal import HearthModel
internal import HearthTLS
import HearthHTTPClient
internal import HearthTransport

/// A bundle on a server. It is fetched when the loader first reads it, on the loader's thread.
final class RemoteBundle: Sendable {
    /// A loader holds the documents of a whole bundle in memory, so larger bundles are rejected.
    static let sizeBytesMax = 256 << 20

    private let url: URL
    private let tls: TLSOptions
    private let tasks: InstanceTasks

    /// - Parameter url: a URL with the scheme `http` or `https`.
    init(_ url: URL, tls: TLSSettings, tasks: InstanceTasks) {
        self.url = url
        self.tls = tls.options
        self.tasks = tasks
    }

    /// Blocks the calling thread.
    /// - Throws: `NOT_FOUND`, `PERMISSION_DENIED` or `UNAVAILABLE` by the server's answer; `RESOURCE_EXHAUSTED` when it
    ///   is too large.
    func bytes() throws(Status) -> Data {
        let result = Locked<Result<Data, Status>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        tasks.run { [self] in
            let fetched: Result<Data, Status>
            do throws(Status) { fetched = .success(try await fetch()) } catch { fetched = .failure(error) }
            result.with { $0 = fetched }
            isDone.signal()
        }
        isDone.wait()
        guard let result = result.with({ $0 }) else {
            throw .internalError("A bundle's fetching ended without result.")
        }
        return try result.get()
    }

    private func fetch() async throws(Status) -> Data {
        let transport = try Transport(name: "hearth-bundle")
        defer { transport.shutDown() }
        var request = HTTPRequest(url: url.absoluteString)
        request.tls = tls
        request.redirectsMax = 5
        request.acceptsCompression = true
        let response = try await HTTPClient(transport: transport).response(
            to: request, bodyBytesMax: Self.sizeBytesMax)
        switch response.status {
        case 200: return Data(response.body)
        case 404, 410: throw .notFound("There is no bundle at \(url.absoluteString) (\(response.status)).")
        case 401, 403:
            throw Status(.permissionDenied, "The bundle at \(url.absoluteString) may not be read (\(response.status)).")
        default: throw .unavailable("The server of \(url.absoluteString) answered \(response.status).")
        }
    }
}
