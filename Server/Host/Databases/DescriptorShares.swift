import HearthModel

/// How a server divides the file descriptors that its process may have: between open databases, the files of large
/// answers, and connections, which get the rest.
///
/// Idle connections would otherwise take the last descriptor, and databases could not be opened or read any more.
package struct DescriptorShares: Equatable, Sendable {
    /// Stores in use at the same time.
    package var storesUsedMax: Int
    /// Connections that are open at the same time.
    package var connectionsMax: Int

    /// - Parameters:
    ///   - descriptorsMax: the file descriptors that the process may have.
    ///   - connectionsMax: how many connections there may be, however many descriptors there are.
    /// - Throws: INVALID_ARGUMENT when too few connections remain.
    package init(descriptorsMax: Int, loopCount: Int, connectionsMax: Int) throws(Status) {
        let stores = Self.storesUsedMax(descriptorsMax: descriptorsMax)
        let own = Limits.descriptorsOwn + Limits.loopDescriptors * loopCount
        let files = min(Limits.fileDescriptorsMax, descriptorsMax / 8)
        let rest = descriptorsMax - own - files - stores * Limits.databaseDescriptorsMax
        guard rest >= min(Limits.connectionsLeastMax, connectionsMax) else {
            throw .invalidArgument(
                "The process may open \(descriptorsMax) files, which leaves \(max(0, rest)) for connections beside the"
                    + " databases; \(Limits.connectionsLeastMax) are the least. Raise the limit of open files (`ulimit -n`,"
                    + " LimitNOFILE of systemd) to \(Limits.descriptorsAdvised) or more.")
        }
        storesUsedMax = stores
        self.connectionsMax = min(connectionsMax, rest)
    }

    /// A quarter of the descriptors is for databases, but half of them for the first 32.
    static func storesUsedMax(descriptorsMax: Int) -> Int {
        let few = min(Limits.databasesUsedLeastMax, descriptorsMax / 2 / Limits.databaseDescriptorsMax)
        let many = descriptorsMax / 4 / Limits.databaseDescriptorsMax
        return max(8, min(Limits.databasesUsedMax, max(few, many)))
    }
}
