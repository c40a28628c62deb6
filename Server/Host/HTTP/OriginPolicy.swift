import HearthModel
import HearthNetwork

/// Decides which web pages may use a server for local development.
///
/// Such a server trusts every client. A page of any site that a developer opens runs on the same machine. It must not
/// be able to read, change or delete data, neither by cross-origin requests (`Origin`) nor by a name of its own that
/// resolves to 127.0.0.1 (`Host`, "DNS rebinding"). Pages at loopback addresses are allowed: they are the developer's
/// own pages. A request without a browser's header fields is not from a page, and is not checked.
///
/// A server that is not for local development requires tokens instead; pages of any origin may send them.
package struct OriginPolicy: Sendable {
    /// Lowercase: `https://app.example:3000`, or `null`.
    private let origins: Set<String>
    /// Lowercase, without ports.
    private let hosts: Set<String>

    /// - Parameters:
    ///   - origins: allowed origins of other pages, as browsers write them.
    ///   - hosts: further names of the server.
    package init(origins: [String], hosts: [String]) {
        self.origins = Set(origins.map { $0.lowercased() })
        self.hosts = Set(hosts.map { Self.withoutBrackets($0.lowercased()) })
    }

    /// The reason why a request is rejected, as a sentence; nil when it is allowed.
    package func refusal(_ head: HTTPRequestHead) -> String? {
        let host = Self.host(ofAuthority: head.authority.lowercased())
        if !isOurs(host) {
            return "The server for local development is not known as \"\(host)\". "
                + "Use localhost, an IP address, or name the host with --allow-host."
        }
        if let origin = head.firstValue("origin") {
            return isAllowed(origin, host) ? nil : Self.refusal(ofOrigin: origin)
        }
        // Requests for scripts and images of other pages have no origin, and a script is how JSONP is read. Browsers
        // state the source of such requests in another header.
        if let site = head.firstValue("sec-fetch-site") {
            guard site == "cross-site", !Self.isNavigation(head) else { return nil }
        } else {
            // Browsers send that header only to trustworthy origins, which an address of the local network is not.
            // Source: "Fetch Metadata Request Headers" of the W3C, section 2.
            guard Self.isReadByScripts(head), head.firstValue("referer") != nil || Self.isOfBrowser(head) else {
                return nil
            }
        }
        let referrer = head.firstValue("referer").flatMap(Self.origin(ofURL:))
        if let referrer, isAllowed(referrer, host) { return nil }
        return Self.refusal(ofOrigin: referrer ?? "null")
    }

    /// Whether the response is a script that the requesting page can read: JSONP, and the long polling of the Realtime
    /// Database.
    private static func isReadByScripts(_ head: HTTPRequestHead) -> Bool {
        if head.path == "/.lp" { return true }
        guard let query = head.query, let parameters = URLCoding.parameters(query) else { return false }
        return parameters.contains { $0.name == "callback" }
    }

    /// A page can hide its address, but not these fields of the browser.
    private static func isOfBrowser(_ head: HTTPRequestHead) -> Bool {
        head.firstValue("user-agent")?.lowercased().hasPrefix("mozilla/") ?? false
    }

    private static func refusal(ofOrigin origin: String) -> String {
        "Pages of the origin \"\(origin)\" may not use this server for local development. "
            + "Serve the page from localhost, or name its origin with --allow-origin."
    }

    /// Opening an address in a tab shows the response to the user, not to the page that has the link.
    private static func isNavigation(_ head: HTTPRequestHead) -> Bool {
        (head.method == "GET" || head.method == "HEAD") && head.firstValue("sec-fetch-mode") == "navigate"
            && head.firstValue("sec-fetch-dest") == "document"
    }

    // MARK: Hosts

    /// Whether nobody else can make this name resolve to the server.
    private func isOurs(_ host: String) -> Bool {
        // HTTP/1.0 clients may send no host; browsers always do.
        if host.isEmpty || Self.isLoopback(host) || Self.isAddress(host) || hosts.contains(host) { return true }
        // Names without a dot belong to the local network: containers use such names for each other.
        if !host.utf8.contains(UInt8(ascii: ".")) { return true }
        // SDKs put the namespace of the Realtime Database into the host.
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
        // By bytes, because every request runs this.
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
        // A page from the host that it connects to is also served by the developer; native clients send that host as
        // their origin.
        return Self.isLoopback(from) || (!from.isEmpty && from == host)
    }

    /// `https://a.example/b` without the part after the authority.
    private static func origin(ofURL string: String) -> String? {
        guard let start = string.range(ofScheme: "://") else { return nil }
        let end = string[start...].firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? string.endIndex
        return String(string[..<end])
    }

    /// Whether a string is an origin as browsers write it: a scheme and an authority without a path.
    package static func isOrigin(_ string: String) -> Bool {
        if string == "null" { return true }
        guard let start = string.range(ofScheme: "://"), start < string.endIndex else { return false }
        return !string[start...].contains { $0 == "/" || $0 == "?" || $0 == "#" || $0 == "@" || $0 == " " }
    }
}

extension String {
    /// The range of the string after `mark`; nil without it, or with nothing before it.
    fileprivate func range(ofScheme mark: String) -> Index? {
        guard let colon = firstIndex(of: ":"), colon > startIndex, self[colon...].hasPrefix(mark) else { return nil }
        return index(colon, offsetBy: mark.count)
    }
}
