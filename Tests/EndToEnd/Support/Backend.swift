import Foundation
import FoundationNetworking
import HearthModel
import HearthNetwork
import HearthHost
import HearthFirestoreServer
import HearthServer
import HearthTestSupport
import Synchronization

/// A server in this process with its data in a temporary folder. Clients connect through a proxy that can be cut.
final class Backend: Sendable {
    static let project = "demo-end-to-end"

    let folder: TemporaryFolder
    /// The proxy to which clients connect.
    let network: Proxy
    private let rulesPath: String?
    private let databaseRulesPath: String?
    private let bundles: [String: BundleDefinition]
    private let key: SigningKey?
    private let tls: TLSConfiguration?
    private let running = Mutex<Server?>(nil)
    /// The port of the server itself, without the proxy.
    let port: Int

    /// - Parameters:
    ///   - rules: security rules; without them all requests are permitted.
    ///   - databaseRules: the same for the Realtime Database.
    ///   - bundle: the definition of a bundle with the name `bundle`, as JSON.
    ///   - secret: with it the server is not for local development: it accepts only tokens with this signature.
    ///   - tls: without it nothing is encrypted.
    init(
        rules: String? = nil, databaseRules: String? = nil, bundle: String? = nil, secret: String? = nil,
        tls: TLSConfiguration? = nil
    ) throws {
        let folder = TemporaryFolder()
        self.folder = folder
        rulesPath = rules.map { folder.write("firestore.rules", $0) }
        databaseRulesPath = databaseRules.map { folder.write("database.rules.json", $0) }
        bundles =
            try bundle.map { string in
                [
                    "bundle": try BundleDefinition(
                        json: Array(string.utf8), file: "bundle.json", name: "bundle",
                        database: DatabaseName(project: Backend.project))
                ]
            } ?? [:]
        key = try secret.map { try SigningKey.secret(Array($0.utf8)) }
        self.tls = tls
        let server = try Self.start(folder: folder.path, rulesPath, databaseRulesPath, bundles, key, tls, port: 0)
        port = server.port
        network = try Proxy(to: server.port)
        running.withLock { $0 = server }
    }

    deinit {
        network.close()
        running.withLock { $0 }?.shutdown(graceSeconds: 0)
    }

    private static func start(
        folder: String, _ rules: String?, _ databaseRules: String?, _ bundles: [String: BundleDefinition],
        _ key: SigningKey?, _ tls: TLSConfiguration?, port: Int
    ) throws -> Server {
        var configuration = Server.Configuration()
        configuration.dataFolder = "\(folder)/data"
        configuration.workersMax = 2
        configuration.log = Log(format: .string, level: .error)
        configuration.project = project
        configuration.rules = rules.map { ["(default)": $0] } ?? [:]
        configuration.realtimeRules = databaseRules
        configuration.bundles = bundles
        if let key {
            configuration.isEmulator = false
            configuration.identity.keys = [IdentityConfiguration.Key(id: nil, key: key)]
        }
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: port, loopCount: 1, tls: tls)
        let server = try Server(configuration)
        do {
            try server.start()
        } catch {
            server.shutdown(graceSeconds: 0)
            throw error
        }
        return server
    }

    /// Ends the server in the middle of any operation.
    func stop() {
        let server = running.withLock { server in
            defer { server = nil }
            return server
        }
        server?.shutdown(graceSeconds: 0)
    }

    /// Starts it again with its data, on the same port.
    func restart() async throws {
        // Meanwhile another connection on this machine may use the port as its local port.
        let server = try await Waiting.retry { [folder, rulesPath, databaseRulesPath, bundles, key, tls, port] in
            try Self.start(folder: folder.path, rulesPath, databaseRulesPath, bundles, key, tls, port: port)
        }
        running.withLock { $0 = server }
    }

    /// Ends the server and copies its data.
    func backUp() async throws -> TemporaryFolder {
        stop()
        let copy = TemporaryFolder()
        try FileManager.default.copyItem(atPath: "\(folder.path)/data", toPath: "\(copy.path)/data")
        try await restart()
        return copy
    }

    /// Restores the data of a copy.
    func restore(_ copy: TemporaryFolder) async throws {
        stop()
        try FileManager.default.removeItem(atPath: "\(folder.path)/data")
        try FileManager.default.copyItem(atPath: "\(copy.path)/data", toPath: "\(folder.path)/data")
        try await restart()
    }

    /// Replaces the server by another one without data.
    func replace() async throws {
        stop()
        try FileManager.default.removeItem(atPath: "\(folder.path)/data")
        try await restart()
    }

    /// Deletes all documents.
    func empty() async throws {
        var request = URLRequest(
            url: url("/emulator/v1/projects/\(Self.project)/databases/(default)/documents"))
        request.httpMethod = "DELETE"
        let (_, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw Waiting.TimedOut(description: "\(response)")
        }
    }

    /// Replaces the rules until the server is restarted.
    func change(rules: String) async throws {
        var request = URLRequest(url: url("/emulator/v1/projects/\(Self.project):securityRules"))
        request.httpMethod = "PUT"
        request.httpBody = try JSONSerialization.data(
            withJSONObject: ["rules": ["files": [["name": "firestore.rules", "content": rules]]]])
        let (_, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw Waiting.TimedOut(description: "\(response)")
        }
    }

    /// A signed token.
    /// - Parameter seconds: its remaining lifetime; negative for the time since it expired.
    func token(of uid: String, seconds: Int64) throws -> String {
        guard let key else { preconditionFailure("the server has no key") }
        let now = Int64(Date().timeIntervalSince1970)
        // An expired token had a lifetime of an hour.
        return try TokenMint.mint(
            key, subject: uid, issuedAt: seconds < 0 ? now + seconds - 3600 : now, seconds: seconds < 0 ? 3600 : seconds
        )
    }

    func url(_ path: String) -> URL { URL(string: "http://127.0.0.1:\(port)\(path)")! }
}
