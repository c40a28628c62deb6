import HearthModel
import HearthTree

/// Parses users' paths, and rejects those that no database can have.
enum Paths {
    /// - Parameters:
    ///   - string: may begin with `.info`.
    ///   - call: the prefix of error messages.
    static func path(_ string: String, below base: TreePath, _ call: String) throws(Status) -> TreePath {
        var path = base
        for part in string.utf8.split(separator: UInt8(ascii: "/")) {
            let string = String(Substring(part))
            path.keys.append(path.isRoot && TreeKey(string) == .info ? .info : try key(string, call))
        }
        try check(path, call)
        return path
    }

    /// The same, but fails for the location itself.
    static func descendant(_ string: String, of base: TreePath, _ call: String) throws(Status) -> TreePath {
        let path = try path(string, below: base, call)
        guard path.count > base.count else { throw .invalidArgument("\(call) needs a path that isn't empty.") }
        return path
    }

    static func key(_ string: String, _ call: String) throws(Status) -> TreeKey {
        let key = TreeKey(string)
        guard TreeLimits.client.isValid(key) else {
            throw .invalidArgument(
                "\(call) got the key \"\(string)\". A key has 1 to \(TreeLimits.client.keySizeBytesMax) bytes, and none of "
                    + ". $ # [ ] / and control characters.")
        }
        return key
    }

    static func check(_ path: TreePath, _ call: String) throws(Status) {
        let limits = TreeLimits.client
        guard path.count <= limits.depthMax else {
            throw .invalidArgument("\(call) got a path with more than \(limits.depthMax) parts: \(path).")
        }
        let size = path.keys.reduce(0) { $0 + $1.string.utf8.count } + max(0, path.count - 1)
        guard size <= limits.pathSizeBytesMax else {
            throw .invalidArgument("\(call) got a path of more than \(limits.pathSizeBytesMax) bytes: \(path).")
        }
    }

    /// `.info` belongs to the client: users cannot write below it.
    static func checkWritable(_ path: TreePath, _ call: String) throws(Status) {
        guard path.first != .info else {
            throw .invalidArgument("\(call) can't write to \(path): what lies below .info is made by the client.")
        }
    }
}

extension TreeKey {
    /// The tree in which the client publishes the state of its connection.
    static let info: TreeKey = ".info"
}
