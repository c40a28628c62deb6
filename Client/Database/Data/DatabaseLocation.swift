import Foundation
import HearthModel
import HearthTree

/// The parts of a database's URL: the server, the database on it, and an optional path.
///
/// `https://NAMESPACE.firebaseio.com/path`, `https://NAMESPACE.REGION.firebasedatabase.app`,
/// `http://localhost:9000?ns=NAMESPACE`.
struct DatabaseLocation: Hashable {
    /// Lower case; IPv6 in brackets.
    var host: String
    /// nil: TLS on its default port, independent of the scheme.
    var port: Int?
    var isSecure: Bool
    var namespace: String
    var path = TreePath.root

    var hostAndPort: String { port.map { "\(host):\($0)" } ?? host }

    /// Scheme and host: the prefix of a reference's `url`.
    var base: String { (isSecure ? "https://" : "http://") + hostAndPort }

    init(_ url: String) throws(Status) {
        guard let (scheme, rest) = Self.split(url, at: "://") else { throw Self.invalid(url, "it has no scheme") }
        guard ["http", "https"].contains(scheme.lowercased()) else {
            throw Self.invalid(url, "its scheme is neither http nor https")
        }
        let withoutFragment = rest.prefix { $0 != "#" }
        let address = withoutFragment.prefix { $0 != "?" }
        let authority = address.prefix { $0 != "/" }
        (host, port) = try Self.hostAndPort(String(authority), url)
        isSecure = port == nil || scheme.lowercased() == "https"
        namespace = Self.namespace(host: host, query: withoutFragment.dropFirst(address.count + 1))
        for part in address.dropFirst(authority.count).split(separator: "/") {
            guard let string = part.replacing("+", with: " ").removingPercentEncoding else {
                throw Self.invalid(url, "its path has a percent sign that encodes nothing")
            }
            path.keys.append(try Paths.key(string, "The database URL \(url)"))
        }
    }

    /// The location on an emulator or another server.
    mutating func move(toHost host: String, port: Int) {
        self.host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        self.port = port
        isSecure = false
    }

    /// - Parameter string: `host:port`.
    mutating func move(to string: String) throws(Status) {
        let url = "http://" + string
        let (host, port) = try Self.hostAndPort(string, url)
        guard let port else { throw Self.invalid(url, "it has no port") }
        move(toHost: host, port: port)
    }

    /// The URL of a path: percent-encoded, without the namespace.
    func url(of path: TreePath) -> String {
        path.keys.reduce(path.isRoot ? base + "/" : base) { $0 + "/" + Self.encode($1.string) }
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")

    private static func encode(_ string: String) -> String {
        string.addingPercentEncoding(withAllowedCharacters: unreserved) ?? string
    }

    private static func split(_ string: String, at separator: String) -> (Substring, Substring)? {
        guard let range = string.range(of: separator) else { return nil }
        return (string[..<range.lowerBound], string[range.upperBound...])
    }

    private static func hostAndPort(_ string: String, _ url: String) throws(Status) -> (String, Int?) {
        var host = string
        var port: Int?
        // Colons within brackets belong to an IPv6 address.
        if let colon = string.lastIndex(of: ":"), !string[colon...].contains("]") {
            guard let number = Int(string[string.index(after: colon)...]), (1...65535).contains(number) else {
                throw invalid(url, "its port is no number from 1 to 65535")
            }
            port = number
            host = String(string[..<colon])
        }
        let isOrdinary = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "@") }
        guard !host.isEmpty, isOrdinary else { throw invalid(url, "it has no host") }
        return (host.lowercased(), port)
    }

    /// On a host of the service the first label. On other hosts the `ns` parameter, or else the first label.
    private static func namespace(host: String, query: Substring) -> String {
        let isOfTheService = host.hasSuffix(".firebaseio.com") || host.hasSuffix(".firebasedatabase.app")
        let first = String(host.prefix { $0 != "." })
        guard !isOfTheService else { return first }
        for parameter in query.split(separator: "&") where parameter.hasPrefix("ns=") {
            let name = parameter.dropFirst(3)
            if let name = name.removingPercentEncoding, !name.isEmpty { return name }
        }
        return first
    }

    private static func invalid(_ url: String, _ why: String) -> Status {
        .invalidArgument("The database URL \"\(url)\" can't be used: \(why).")
    }
}
