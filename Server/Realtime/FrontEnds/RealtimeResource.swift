import HearthHost
import HearthModel
import HearthTree

/// The target of a request's path: a location in a tree, or an administrative resource.
enum RealtimeResource: Equatable, Sendable {
    case data(TreePath)
    /// `/.settings/rules.json`
    case rules
    /// `/.inspect/databases.json`
    case databases
    /// `/.settings` or `/.inspect` and an unknown resource.
    case unknown

    private static let suffix = ".json"

    /// Whether a path has the form of the Realtime Database's paths.
    static func isIn(_ path: String) -> Bool { path.hasSuffix(suffix) }

    /// - Parameter path: percent-encoded, with `.json` at its end: `/a/b.json`, `/a/b/.json`.
    /// - Throws: INVALID_ARGUMENT for an invalid location.
    init(_ path: String) throws(Status) {
        var keys: [TreeKey] = []
        // Each part is decoded after the path is split, so that %2F is not a separator but an error.
        for part in path.dropLast(Self.suffix.count).utf8.split(separator: UInt8(ascii: "/")) {
            guard let key = URLCoding.decode(Substring(part)) else {
                throw .invalidArgument(TreeDataError.invalidPath.message)
            }
            keys.append(TreeKey(key))
        }
        switch keys.first {
        case ".settings", ".inspect":
            switch keys.map(\.string).joined(separator: "/") {
            case ".settings/rules": self = .rules
            case ".inspect/databases": self = .databases
            default: self = .unknown
            }
        default:
            let location = TreePath(keys: keys)
            do throws(TreeDataError) {
                try TreeLimits.standard.check(location, allowingPriority: true)
            } catch {
                throw .invalidArgument(error.message)
            }
            self = .data(location)
        }
    }
}
