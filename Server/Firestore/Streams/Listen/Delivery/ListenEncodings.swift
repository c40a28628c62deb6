import HearthModel

/// Messages about the newest version, encoded once for all streams of a loop that send the same message.
struct ListenEncodings {
    struct Key: Hashable {
        var document: [UInt8]
        var ids: [Int32]
        var removed: [Int32]
        var isJSON: Bool
    }

    struct Boundary: Hashable {
        var version: Int64
        var readTime: Timestamp
        var isJSON: Bool
    }

    /// The most messages to cache for one version. A commit of more documents is encoded for each stream.
    private static let countMax = 64

    private var changes: [Key: [UInt8]] = [:]
    private var boundaries: [Boundary: [UInt8]] = [:]

    mutating func change(_ key: Key, _ encode: () throws(Status) -> [UInt8]) throws(Status) -> [UInt8] {
        if let known = changes[key] { return known }
        let bytes = try encode()
        if changes.count < Self.countMax { changes[key] = bytes }
        return bytes
    }

    mutating func boundary(_ boundary: Boundary, _ encode: () -> [UInt8]) -> [UInt8] {
        if let known = boundaries[boundary] { return known }
        let bytes = encode()
        if boundaries.count < Self.countMax { boundaries[boundary] = bytes }
        return bytes
    }
}
