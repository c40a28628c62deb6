import HearthTLS

/// A request that is not gRPC.
package struct HTTPRequest: Sendable {
    package var method: String
    /// `http` or `https`.
    package var url: String
    package var headers: [HTTPField]
    package var body: [UInt8]
    /// For the whole request; nil: never, for event streams.
    package var timeoutMilliseconds: Int?
    package var connectTimeoutMilliseconds = 20_000
    /// Used for `https`.
    package var tls = TLSOptions()
    package var proxy = ProxySetting.environment
    /// The number of redirections to follow. `authorization` is not sent to another host.
    package var redirectsMax = 0
    /// Whether to accept a compressed response.
    package var acceptsCompression = false
    /// Whether HTTP/2 is not offered.
    package var isHTTP1Only = false
    /// Whether the request gets a new connection. A kept one can end at the moment in which the request is sent.
    package var opensConnection = false

    package init(method: String = "GET", url: String, headers: [HTTPField] = [], body: [UInt8] = []) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// The URL for messages and logs: a user's name and password, a query and a fragment may be secrets, and are left out.
    package var shownURL: String {
        let end = url.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? url.endIndex
        let bare = String(url[..<end])
        guard let start = bare.index(after: "://") else { return bare }
        let authority = bare.utf8[start...].prefix { $0 != UInt8(ascii: "/") }
        guard let mark = authority.lastIndex(of: UInt8(ascii: "@")) else { return bare }
        return String(bare[..<start]) + String(bare[bare.utf8.index(after: mark)...])
    }
}
