internal import Foundation
internal import HearthApp
internal import HearthModel
internal import HearthSync
internal import HearthTransport

/// Where the network comes in: settings become an address.
enum NetworkDatastore {
    static func make(_ request: EngineFactory.Request) throws(Status) -> any Datastore {
        try GRPCDatastore(
            address: try address(host: request.host, isSSLEnabled: request.isSSLEnabled, TLSOptions(request.tls)))
    }

    /// - Parameter host: a name or an address, with a port or without; IPv6 with brackets when it has a port.
    static func address(
        host text: String, isSSLEnabled: Bool, _ tls: TLSOptions = TLSOptions()
    ) throws(Status) -> ServerAddress {
        let (host, port) = try split(text)
        return ServerAddress(
            host: host, port: port ?? (isSSLEnabled ? 443 : 80),
            security: isSSLEnabled ? .tls(tls) : .plaintext,
            // No proxy reaches what is on this machine.
            proxy: isLoopback(host) ? .none : .environment)
    }

    private static func split(_ text: String) throws(Status) -> (host: String, port: Int?) {
        let colons = text.utf8.count { $0 == UInt8(ascii: ":") }
        // Several colons without brackets are an IPv6 address as a whole.
        guard colons == 1 || text.contains("]:"), let colon = text.lastIndex(of: ":") else { return (bare(text), nil) }
        let host = bare(String(text[..<colon]))
        guard let port = Int(text[text.index(after: colon)...]), (1...65535).contains(port), !host.isEmpty else {
            throw .invalidArgument("FirestoreSettings.host is neither a host nor host:port: \"\(text)\".")
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

extension TLSOptions {
    init(_ settings: TLSSettings) {
        self.init(
            authoritiesPath: settings.authorities?.path, clientCertificatePath: settings.clientCertificate?.path,
            clientKeyPath: settings.clientKey?.path, clientKeyPassword: settings.clientKeyPassword)
    }
}
