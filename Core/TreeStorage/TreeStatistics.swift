import HearthEngine

/// The statistics of a tree's writer since it was opened.
package struct TreeStatistics: Sendable {
    package init() {}

    package var commits = 0
    /// Groups of writes that were made durable together.
    package var groups = 0
    /// Groups for which the store failed.
    package var failedGroups = 0
    /// Writes that wait.
    package var queuedWrites = 0
    package var queuedBytes = 0
    package var store = StoreStatistics()
}
