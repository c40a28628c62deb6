import HearthHost
import HearthModel
import HearthTree

/// The target of a request's path: a location in a tree, or an administrative resource.
enum RealtimeResource: Equatable, Sendable {
    case data(TreePath)
    /// `PATH/.upload`: a form with a file, whose JSON replaces the data of a location.
    case upload(TreePath)
    /// `/.settings/rules.json`
    case rules
    /// `/.inspect/databases.json`
    case databases
    /// `/.settings` or `/.inspect` and an unknown resource.
    case unknown

    private static let suffix = ".json"
    private static let uploadSuffix = "/.upload"

    /// Whether a path has the form of the Realtime Database's paths.
    static func isIn(_ path: String) -> Bool { path.hasSuffix(suffix) || path.hasSuffix(uploadSuffix) }

    /// - Parameter path: percent-encoded, with `.json` or `/.upload` at its end: `/a/b.json`, `/a/b/.json`, `/a/b/.upload`.
    /// - Throws: INVALID_ARGUMENT for an invalid location.
    init(_ path: String) throws(Status) {
        var keys: [TreeKey] = []
        // Each part is decoded after the path is split, so that %2F is not a separator but an error.
        let isUpload = path.hasSuffix(Self.uploadSuffix)
        let location = path.dropLast(isUpload ? Self.uploadSuffix.count : Self.suffix.count)
        for part in location.utf8.split(separator: UInt8(ascii: "/")) {
            guard let key = URLCoding.decode(Substring(part)) else {
                throw .invalidArgument(TreeDataError.invalidPath.message)
            }
            keys.append(TreeKey(key))
        }
        switch keys.first {
        case ".settings", ".inspect":
            switch isUpload ? "" : keys.map(\.string).joined(separator: "/") {
            case ".settings/rules": self = .rules
            case ".inspect/databases": self = .databases
            default: self = .unknown
            }
        default:
            let location = TreePath(keys: keys)
            do throws(TreeDataError) {
                try TreeLimits.standard.check(location, allowingPriority: !isUpload)
            } catch {
                throw .invalidArgument(error.message)
            }
            self = isUpload ? .upload(location) : .data(location)
        }
    }
}
