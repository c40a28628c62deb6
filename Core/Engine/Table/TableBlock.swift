/// A piece of memory of a table: an entry or a node. Its first eight bytes are the version that made it. What a
/// published version shows is never changed, so readers need no lock.
typealias TableBlock = UnsafeMutableRawPointer

extension TableBlock {
    /// The version that made the block.
    @inline(__always)
    var madeVersion: UInt64 {
        get { load(as: UInt64.self) }
        nonmutating set { storeBytes(of: newValue, as: UInt64.self) }
    }
}
