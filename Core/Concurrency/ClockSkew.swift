import HearthModel

/// The checks for a database that holds commits of the future, because the clock was or is wrong.
package enum ClockSkew {
    /// From this many seconds on, the server warns.
    static let warningSeconds: Int64 = 5
    /// From this many seconds on, the database is not opened, unless that is allowed.
    static let refusedSeconds: Int64 = 3600

    /// - Parameters:
    ///   - version: the version of the newest commit.
    ///   - isAllowed: opens the database anyway.
    /// - Returns: how many seconds the newest commit lies ahead of the clock, when that deserves a warning.
    /// - Throws: `FAILED_PRECONDITION`.
    package static func check(version: Int64, of name: DatabaseName, now: Timestamp, isAllowed: Bool) throws(Status)
        -> Int64?
    {
        let seconds = (version - now.microseconds) / 1_000_000
        if seconds >= refusedSeconds, !isAllowed {
            throw .failedPrecondition(
                "The newest commit of \(name) lies \(seconds) seconds ahead of this machine's clock. Set the clock, "
                    + "or start the server with --allow-clock-skew; see docs/reference/reliability.md.")
        }
        return seconds >= warningSeconds ? seconds : nil
    }
}
