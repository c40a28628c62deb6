/// A request without its body.
package struct HTTPRequestHead: Sendable {
    package var method: String
    /// Path and query exactly as sent.
    package var target: String
    /// The path, still percent-encoded.
    package var path: String
    /// What follows the first `?`, still percent-encoded; nil without one.
    package var query: String?
    /// Host and port from the client; empty when an HTTP/1.0 client does not send them.
    package var authority: String
    /// `http` or `https`.
    package var scheme: String
    package var headers: [HTTPHeader]
    package var version: HTTPVersion
    /// `address:port` of the peer.
    package var remoteAddress: String
    /// Identifies a connection in the process.
    package var connectionNumber: UInt64
    package var isSecure: Bool

    init(
        method: String, target: String, authority: String, scheme: String, headers: [HTTPHeader],
        version: HTTPVersion, remoteAddress: String, connectionNumber: UInt64, isSecure: Bool
    ) {
        self.method = method
        self.target = target
        if let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) {
            path = String(target[..<mark])
            query = String(target[target.utf8.index(after: mark)...])
        } else {
            path = target
            query = nil
        }
        self.authority = authority
        self.scheme = scheme
        self.headers = headers
        self.version = version
        self.remoteAddress = remoteAddress
        self.connectionNumber = connectionNumber
        self.isSecure = isSecure
    }

    /// The value of the first field with this name.
    package func firstValue(_ lowercaseName: String) -> String? { headers.firstValue(lowercaseName) }

    /// The values of all fields with this name, in order.
    package func values(_ lowercaseName: String) -> [String] {
        headers.filter { $0.name == lowercaseName }.map(\.value)
    }
}

extension [HTTPHeader] {
    /// The value of the first field with this (lowercase) name.
    package func firstValue(_ lowercaseName: String) -> String? {
        for header in self where header.name == lowercaseName { return header.value }
        return nil
    }
}
