import Synchronization

/// The work of a writer, for tests that count it.
final class TreeWriterCounters: Sendable {
    /// Hashes that were computed beside the writer.
    let hashes = Atomic(0)
    /// Writes whose guard was evaluated there.
    let judgements = Atomic(0)
}
