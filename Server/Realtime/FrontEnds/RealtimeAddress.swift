import HearthHost
import HearthModel
import HearthNetwork
import HearthTree

/// What the path of a request names: a place in a tree, or something of its administration.
enum RealtimeResource: Equatable, Sendable {
    case data(TreePath)
    /// `/.settings/rules.json`
    case rules
    /// `/.settings/functionTriggers.json`
    case functionTriggers
    /// `/.inspect/databases.json`
    case databases
    /// `/.settings` or `/.inspect` and something that isn't there.
    case unknown

    private static let suffix = ".json"

    /// Whether a path is of the form that the Realtime Database's have.
    static func isIn(_ path: String) -> Bool { path.hasSuffix(suffix) }

    /// - Parameter path: percent-encoded, with `.json` at its end: `/a/b.json`, `/a/b/.json`.
    /// - Throws: INVALID_ARGUMENT for a place that can't be.
    init(_ path: String) throws(Status) {
        var keys: [TreeKey] = []
        // Each part is decoded after the path is taken apart, so that %2F is no separator but a mistake.
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
            case ".settings/functionTriggers": self = .functionTriggers
            case ".inspect/databases": self = .databases
            default: self = .unknown
            }
        default:
            let place = TreePath(keys: keys)
            do throws(TreeDataError) {
                try TreeLimits.standard.check(place, allowingPriority: true)
            } catch {
                throw .invalidArgument(error.message)
            }
            self = .data(place)
        }
    }
}

/// Which namespace a request is for.
enum RealtimeAddress {
    /// - Parameters:
    ///   - named: the value of `ns`.
    ///   - standard: when nothing else names one.
    static func namespace(_ head: HTTPRequestHead, named: String?, standard: String) -> String {
        named ?? RealtimeName.inHost(head.authority) ?? standard
    }
}
