import HearthModel

/// The changes of a snapshot for one target.
struct TargetChange: Sendable {
    var resumeToken: [UInt8] = []
    /// The server has sent all documents that existed at the start of the listen.
    var isCurrent = false
    var added: Set<ResourcePath> = []
    var modified: Set<ResourcePath> = []
    var removed: Set<ResourcePath> = []

    var namesDocuments: Bool { !added.isEmpty || !modified.isEmpty || !removed.isEmpty }
}
