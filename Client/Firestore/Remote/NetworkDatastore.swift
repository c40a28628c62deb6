internal import Foundation
internal import HearthApp
internal import HearthModel
internal import HearthSync
internal import HearthTLS
import HearthHTTPClient
internal import HearthTransport

/// Makes the network from settings.
enum NetworkDatastore {
    static func make(_ request: EngineFactory.Request) throws(Status) -> any Datastore {
        try GRPCDatastore(
            address: try address(host: request.host, isSSLEnabled: request.isSSLEnabled, request.tls.options))
    }

    /// - Parameter host: a name or an address, with or without a port; an IPv6 address with a port needs brackets.
    static func address(
        host string: String, isSSLEnabled: Bool, _ tls: TLSOptions = TLSOptions()
    ) throws(Status) -> ServerAddress {
        let (host, port) = try split(string)
        return ServerAddress(
            host: host, port: port ?? (isSSLEnabled ? 443 : 80),
            security: isSSLEnabled ? .tls(tls) : .plaintext,
            // A proxy cannot reach a server on this machine.
            proxy: isLoopback(host) ? .none : .environment)
    }

    private static func split(_ string: String) throws(Status) -> (host: String, port: Int?) {
        let colons = string.utf8.count { $0 == UInt8(ascii: ":") }
        // Several colons without brackets are an IPv6 address without a port.
        guard colons == 1 || string.contains("]:"), let colon = string.lastIndex(of: ":") else {
            return (bare(string), nil)
        }
        let host = bare(String(string[..<colon]))
        guard let port = Int(string[string.index(after: colon)...]), (1...65535).contains(port), !host.isEmpty else {
            throw .invalidArgument("FirestoreSettings.host is neither a host nor host:port: \"\(string)\".")
        }
        return (host, port)
    }

    private static func bare(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }
}
