import HearthModel

/// The ordered maps of a store. Their key formats are described in `DocumentKey.swift`, `IndexKey.swift` and
/// `Feed.swift`.
package enum Keyspace: Int, CaseIterable, Sendable {
    /// Document key to create time, update time, and fields in wire form.
    case documents
    /// Index entries; the value is empty or contains the data that a covering read needs. Many and small.
    case entries
    /// Version and document key to the state before. Appended at the end, deleted at the front.
    case feed
    /// Small records by name: last version, index definitions, tombstones.
    case meta
}
