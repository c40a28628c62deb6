internal import Foundation
internal import HearthModel
internal import HearthSync

/// Makes the engine of a Firestore instance. Tests use another factory.
struct EngineFactory: Sendable {
    /// The parameters of the engine.
    struct Request: Sendable {
        var configuration: SyncConfiguration
        var host: String
        var isSSLEnabled: Bool
        var tls: TLSSettings
        var credentials: any CredentialsProvider
        /// Runs completions and events, one after another.
        var callbacks: DispatchQueue
    }

    var make: @Sendable (Request) throws(Status) -> any FirestoreEngine
    var clearPersistence: @Sendable (SyncConfiguration) throws(Status) -> Void

    /// The sync engine over a given network.
    static func syncing(
        over network: @escaping @Sendable (Request) throws(Status) -> any Datastore
    ) -> EngineFactory {
        EngineFactory(
            make: { (request) throws(Status) in
                let client = try SyncClient(
                    configuration: request.configuration, datastore: try network(request),
                    credentials: request.credentials,
                    callbacks: { work in request.callbacks.async(execute: work) })
                return SyncClientEngine(client)
            },
            clearPersistence: { (configuration) throws(Status) in try SyncClient.clearPersistence(configuration) })
    }

    /// The sync engine over gRPC.
    static let standard = syncing { (request) throws(Status) in try NetworkDatastore.make(request) }
}
