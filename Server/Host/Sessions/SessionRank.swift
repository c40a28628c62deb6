/// The activity of a session: when there are too many, those of the lowest rank end first.
package enum SessionRank: Int, Sendable, CaseIterable {
    /// The client has created it, and has sent nothing since.
    case bare
    /// The client has no open request or connection for it.
    case unattended
    case attended
}
