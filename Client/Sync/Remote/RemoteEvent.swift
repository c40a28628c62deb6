import HearthModel

/// What a consistent snapshot of the server changes.
struct RemoteEvent: Sendable {
    /// None for what the engine made up itself.
    var snapshotVersion: Timestamp = .none
    var targetChanges: [Int32: TargetChange] = [:]
    /// Targets of which nothing changes but their token.
    var quietTargets: [Int32] = []
    var tokenOfQuietTargets: [UInt8] = []
    /// Targets of which the client had more documents than the server, with the purpose of their next listen.
    var targetMismatches: [Int32: TargetData.Purpose] = [:]
    var documentUpdates: [ResourcePath: ClientDocument] = [:]
    /// Those of the updates that only limbo targets asked for.
    var limboDocumentChanges: Set<ResourcePath> = []
    /// Those of the updates that are all the server has, whatever the cache has of them: it began a target anew, or was asked
    /// for the document alone. A server that was restored from a backup has older states than it had.
    var renewedDocuments: Set<ResourcePath> = []
}

/// What a snapshot changes for one target.
struct TargetChange: Sendable {
    var resumeToken: [UInt8] = []
    /// The server has sent all that there was at the start of the listen.
    var isCurrent = false
    var added: Set<ResourcePath> = []
    var modified: Set<ResourcePath> = []
    var removed: Set<ResourcePath> = []

    var namesDocuments: Bool { !added.isEmpty || !modified.isEmpty || !removed.isEmpty }
}
