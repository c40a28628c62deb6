import HearthModel

/// The answer to a commit.
package struct CommitOutcome: Sendable {
    package var commitTime: Timestamp
    /// One for each write, in order.
    package var results: [WriteResult]
    /// What the commit has left of the document that one write was asked to return; nil for none.
    package var document: StoredDocument?
}
