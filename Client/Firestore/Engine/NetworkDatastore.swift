internal import HearthModel
internal import HearthSync

/// Where the network comes in.
enum NetworkDatastore {
    static func make(_ request: EngineFactory.Request) throws(Status) -> any Datastore {
        throw .unimplemented("The network is not linked into this build.")
    }
}
