import HearthModel

/// The changes of a consistent snapshot of the server.
struct RemoteEvent: Sendable {
    /// `Timestamp.none` for an event that the engine made itself.
    var snapshotVersion: Timestamp = .none
    var targetChanges: [Int32: TargetChange] = [:]
    /// Targets of which only the token changes.
    var quietTargets: [Int32] = []
    var tokenOfQuietTargets: [UInt8] = []
    /// Targets for which the client had more documents than the server, with the purpose of their next listen.
    var targetMismatches: [Int32: TargetData.Purpose] = [:]
    var documentUpdates: [ResourcePath: ClientDocument] = [:]
    /// Those of the updates that only limbo targets requested.
    var limboDocumentChanges: Set<ResourcePath> = []
    /// Those of the updates that apply whatever the cache has: the server reset the target, or the client requested the
    /// document alone. A server that was restored from a backup has older states than before.
    var renewedDocuments: Set<ResourcePath> = []
}
