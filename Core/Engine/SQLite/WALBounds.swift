/// When checkpoints are due, in pages.
package struct WALBounds: Sendable {
    /// A checkpoint is due. Documents with five random index entries each, 500,000 of them: a checkpoint at 50,000
    /// pages allows 2.5 times the commits of one at 1,000. But a commit to a log that is rewritten from its start takes
    /// less than half the time of a commit to a log that still grows, so the log should not grow for long.
    package var walPages = 20_000
    /// The writer waits, and snapshots that block the checkpoint are taken away: 4 GiB.
    package var walPagesMax = 1_000_000
    /// In quiet moments a checkpoint is worth its cost from here on: readers search a shorter WAL, and a start after a
    /// crash is fast.
    package var quietPages = 1_000
    /// The pages that may be copied while the writer waits.
    package var lockedPages = 2_000
    /// Passes beside the writer at a time.
    package var passesMax = 8
    /// How long the writer waits for snapshots that read from the WAL, when the WAL has `walPages`.
    package var patienceMillisecondsMin = 5
    /// The same for a long WAL.
    package var patienceMillisecondsMax = 500

    package init() {}

    /// - Parameter bytes: of the WAL at which a checkpoint is due.
    package init(checkpointBytes bytes: Int) {
        walPages = min(max(8, bytes / FileFormat.pageSizeBytes), walPagesMax)
        quietPages = min(quietPages, walPages)
        lockedPages = min(lockedPages, max(4, walPages / 2))
    }

    /// Grows with the square of the WAL's length: 5 ms, at twice the length 20 ms, at four times 80 ms.
    func patienceMilliseconds(walPages pages: Int) -> Int {
        let ratio = Double(pages) / Double(max(1, walPages))
        let patience = Double(patienceMillisecondsMin) * max(1, ratio * ratio)
        return Int(min(Double(patienceMillisecondsMax), patience))
    }
}
