import HearthModel

/// The position of a commit in a Write stream that can be resumed. It distinguishes a commit that is repeated, because
/// its answer was lost, from a new one.
package struct StreamPosition: Sendable, Equatable {
    /// The stream's random name, `idBytes` bytes.
    package var stream: [UInt8]
    /// The user whose stream it is. A commit of another one fails with ABORTED.
    package var owner: [UInt8]
    /// From 1, without gaps: one for each commit that was made.
    package var number: UInt64
    /// A hash of the request. A client that lost its newest writes in a power failure sends others under their numbers.
    package var fingerprint: UInt64

    package static let idBytes = 16

    package init(stream: [UInt8], owner: [UInt8], number: UInt64, fingerprint: UInt64) {
        precondition(stream.count == Self.idBytes, "an id of \(stream.count) bytes")
        self.stream = stream
        self.owner = owner
        self.number = number
        self.fingerprint = fingerprint
    }

    /// FNV-1a.
    package static func fingerprint(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash
    }
}
