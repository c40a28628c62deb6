import HearthTree

/// The data of a listen that a client has already, by hashes.
package struct KnownData: Sendable {
    /// Nil or "": no data.
    package var hash: String?
    /// The hashes of ranges, when the data is large.
    package var compound: CompoundHash?

    static let nothing = KnownData()
}
