import HearthModel

/// The sizes of keys, paths and values. Source: "Limits" of the Realtime Database's documentation, and the SDKs'
/// checks.
package struct TreeLimits: Sendable {
    /// Keys from the root down to any leaf.
    package var depthMax = Limits.treeDepthMax
    package var keySizeBytesMax = Limits.treeKeySizeBytesMax
    /// The UTF-8 length of a path with its slashes.
    package var pathSizeBytesMax = Limits.treeDepthMax * (Limits.treeKeySizeBytesMax + 1)
    package var stringSizeBytesMax = Limits.treeStringSizeBytesMax

    /// The limits of the server.
    package static let standard = TreeLimits()
    /// The limits of SDKs for their users: paths are shorter.
    package static let client: TreeLimits = {
        var limits = TreeLimits()
        limits.pathSizeBytesMax = Limits.treeClientPathSizeBytesMax
        return limits
    }()

    package init() {}

    /// For data that is written to `path`, which has used a part of the depth.
    package func below(_ path: TreePath) -> TreeLimits {
        var limits = self
        limits.depthMax -= path.count
        return limits
    }

    /// Whether a key may be stored: not empty, not too long, without `.` `$` `#` `[` `]` `/` and control characters.
    package func isValid(_ key: TreeKey) -> Bool {
        TreeKey.withBytes(key.string) { bytes in
            !bytes.isEmpty && bytes.count <= keySizeBytesMax && bytes.allSatisfy(Self.isAllowed)
        }
    }

    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<0x20, 0x7F: false
        case UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "#"), UInt8(ascii: "["), UInt8(ascii: "]"),
            UInt8(ascii: "/"):
            false
        default: true
        }
    }

    /// Rejects a path with an invalid key, and one that is too deep or too long.
    /// - Parameter allowingPriority: whether its last key may be `.priority`.
    package func check(_ path: TreePath, allowingPriority: Bool = false) throws(TreeDataError) {
        let location = allowingPriority && path.last == .priority ? path.keys.dropLast() : path.keys[...]
        guard location.allSatisfy(isValid) else { throw .invalidPath }
        guard location.count <= depthMax else {
            throw TreeDataError("Invalid path: Deeper than \(Limits.treeDepthMax) levels")
        }
        guard location.reduce(location.count - 1, { $0 + $1.string.utf8.count }) <= pathSizeBytesMax else {
            throw TreeDataError("Invalid path: Longer than \(pathSizeBytesMax) bytes")
        }
    }

    /// The path of a string, checked.
    package func path(_ string: String, allowingPriority: Bool = false) throws(TreeDataError) -> TreePath {
        try checkSize(of: string)
        let path = TreePath(string)
        try check(path, allowingPriority: allowingPriority)
        return path
    }

    /// Before a string is split: one slash may follow another, but a path doesn't consist mostly of slashes.
    func checkSize(of string: String) throws(TreeDataError) {
        guard string.utf8.count <= 2 * pathSizeBytesMax else {
            throw TreeDataError("Invalid path: Longer than \(pathSizeBytesMax) bytes")
        }
    }

    func check(_ value: String) throws(TreeDataError) {
        guard value.utf8.count <= stringSizeBytesMax else {
            throw TreeDataError("Invalid data; a string is longer than \(stringSizeBytesMax) bytes.")
        }
    }
}

extension TreeKey {
    /// As the last key of a path it denotes the priority of the location above.
    package static let priority: TreeKey = ".priority"
}
