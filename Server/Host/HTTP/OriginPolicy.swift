import HearthModel
import HearthNetwork

/// Which web pages may use a server for local development.
///
/// Such a server believes everybody. A page of any site that a developer happens to open runs on the same machine, so it
/// must not be able to read, change or delete data there, neither by cross-origin requests (`Origin`) nor by a name of its
/// own that it makes point to 127.0.0.1 (`Host`, "DNS rebinding"). Pages at loopback addresses may: there the developer's
/// own pages are. Whoever sends no browser's fields is no page, and not judged here.
///
/// A server that is not for local development asks for tokens instead; pages of any origin may bring theirs.
package struct OriginPolicy: Sendable {
    /// Lowercase: `https://app.example:3000`, or `null`.
    private let origins: Set<String>
    /// Lowercase, without ports.
    private let hosts: Set<String>

    /// - Parameters:
    ///   - origins: of pages elsewhere that may use the server, as browsers write them.
    ///   - hosts: further names of the server.
    package init(origins: [String], hosts: [String]) {
        self.origins = Set(origins.map { $0.lowercased() })
        self.hosts = Set(hosts.map { Self.withoutBrackets($0.lowercased()) })
    }

    /// Why a request is refused, in a sentence; nil when it is not.
    package func refusal(_ head: HTTPRequestHead) -> String? {
        let host = Self.host(ofAuthority: head.authority.lowercased())
        if !isOurs(host) {
            return "The server for local development is not known as \"\(host)\". "
                + "Use localhost, an IP address, or name the host with --allow-host."
        }
        if let origin = head.firstValue("origin") {
            return isAllowed(origin, host) ? nil : Self.refusal(ofOrigin: origin)
        }
        // Scripts and images of other pages carry no origin, and a script is how JSONP is read. Browsers say where they
        // come from in another way.
        if let site = head.firstValue("sec-fetch-site") {
            guard site == "cross-site", !Self.isNavigation(head) else { return nil }
        } else {
            // They say so only to servers that nobody between can pretend to be: not to an address of the local network. Source:
            // "Fetch Metadata Request Headers" of the W3C, section 2.
            guard Self.isReadByScripts(head), head.firstValue("referer") != nil || Self.isOfBrowser(head) else {
                return nil
            }
        }
        let referrer = head.firstValue("referer").flatMap(Self.origin(ofURL:))
        if let referrer, isAllowed(referrer, host) { return nil }
        return Self.refusal(ofOrigin: referrer ?? "null")
    }

    /// What answers with a script, which the page that asks for it reads: JSONP, and the long polling of the Realtime
    /// Database.
    private static func isReadByScripts(_ head: HTTPRequestHead) -> Bool {
        if head.path == "/.lp" { return true }
        guard let query = head.query, let parameters = URLCoding.parameters(query) else { return false }
        return parameters.contains { $0.name == "callback" }
    }

    /// A page can leave out where it is, but not what shows it.
    private static func isOfBrowser(_ head: HTTPRequestHead) -> Bool {
        head.firstValue("user-agent")?.lowercased().hasPrefix("mozilla/") ?? false
    }

    private static func refusal(ofOrigin origin: String) -> String {
        "Pages of the origin \"\(origin)\" may not use this server for local development. "
            + "Serve the page from localhost, or name its origin with --allow-origin."
    }

    /// Opening an address in a tab shows it to the person in front of it, not to the page that has the link.
    private static func isNavigation(_ head: HTTPRequestHead) -> Bool {
        (head.method == "GET" || head.method == "HEAD") && head.firstValue("sec-fetch-mode") == "navigate"
            && head.firstValue("sec-fetch-dest") == "document"
    }

    // MARK: Hosts

    /// Whether nobody else can make this name point to the server.
    private func isOurs(_ host: String) -> Bool {
        // Clients of HTTP/1.0 name none, browsers always do.
        if host.isEmpty || Self.isLoopback(host) || Self.isAddress(host) || hosts.contains(host) { return true }
        // Names without a dot are of the local network: containers call each other so.
        if !host.utf8.contains(UInt8(ascii: ".")) { return true }
        // SDKs name a namespace of the Realtime Database in the host.
        return RealtimeName.inHost(host) != nil
    }

    static func isLoopback(_ host: String) -> Bool {
        if isIPv4(host) { return host.utf8.starts(with: "127.".utf8) }
        return host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
    }

    private static func isAddress(_ host: String) -> Bool {
        host.utf8.contains(UInt8(ascii: ":")) || isIPv4(host)
    }

    private static func isIPv4(_ host: String) -> Bool {
        var dots = 0
        var digits = 0
        var number = 0
        for byte in host.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                digits += 1
                number = number * 10 + Int(byte - UInt8(ascii: "0"))
                if digits > 3 || number > 255 { return false }
            case UInt8(ascii: ".") where digits > 0:
                dots += 1
                digits = 0
                number = 0
            default: return false
            }
        }
        return dots == 3 && digits > 0
    }

    /// - Parameter authority: `host`, `host:port`, `[address]:port`.
    /// - Returns: without brackets and without the dot that may end a name.
    private static func host(ofAuthority authority: String) -> String {
        // By bytes, because each request comes by here.
        let bytes = authority.utf8
        if bytes.first == UInt8(ascii: "["), let end = bytes.firstIndex(of: UInt8(ascii: "]")) {
            return String(authority[bytes.index(after: bytes.startIndex)..<end])
        }
        var host = authority[..<(bytes.lastIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex)]
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        return String(host)
    }

    private static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    // MARK: Origins

    private func isAllowed(_ origin: String, _ host: String) -> Bool {
        let origin = origin.lowercased()
        if origins.contains(origin) { return true }
        guard let mark = origin.range(ofScheme: "://") else { return false }
        let from = Self.host(ofAuthority: String(origin[mark...]))
        // A page from the host that it talks to is served by the developer, too; native clients name it as their origin.
        return Self.isLoopback(from) || (!from.isEmpty && from == host)
    }

    /// `https://a.example/b` without what follows the authority.
    private static func origin(ofURL string: String) -> String? {
        guard let start = string.range(ofScheme: "://") else { return nil }
        let end = string[start...].firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? string.endIndex
        return String(string[..<end])
    }

    /// Whether a text is an origin as browsers write it: a scheme and an authority without a path.
    package static func isOrigin(_ string: String) -> Bool {
        if string == "null" { return true }
        guard let start = string.range(ofScheme: "://"), start < string.endIndex else { return false }
        return !string[start...].contains { $0 == "/" || $0 == "?" || $0 == "#" || $0 == "@" || $0 == " " }
    }
}

extension String {
    /// Where the text after `mark` begins; nil without it, or with nothing before it.
    fileprivate func range(ofScheme mark: String) -> Index? {
        guard let colon = firstIndex(of: ":"), colon > startIndex, self[colon...].hasPrefix(mark) else { return nil }
        return index(colon, offsetBy: mark.count)
    }
}
