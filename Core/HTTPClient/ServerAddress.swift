import CCurl
import Glibc
import HearthModel
import HearthTLS

/// How connections are secured.
package enum TransportSecurity: Sendable, Hashable {
    case plaintext
    case tls(TLSOptions)
}

/// Which proxy connections go through.
package enum ProxySetting: Sendable, Hashable {
    /// `http_proxy`, `https_proxy`, `HTTPS_PROXY`, `all_proxy`, `ALL_PROXY`, except for the hosts in `no_proxy` or
    /// `NO_PROXY`. There are no automatic exceptions: a proxy is used for `localhost`, too, unless `no_proxy` names it.
    case environment
    case none
    /// `http://host:port`, `socks5h://host:port`, …; for every host.
    case url(String)
}

/// A server, and how to connect to it.
package struct ServerAddress: Sendable, Hashable {
    /// A name or an address; IPv6 with or without brackets.
    package var host: String
    package var port: Int
    package var security: TransportSecurity
    package var proxy: ProxySetting
    /// For looking up the name, TCP and TLS together.
    package var connectTimeoutMilliseconds: Int

    package init(
        host: String, port: Int, security: TransportSecurity, proxy: ProxySetting = .environment,
        connectTimeoutMilliseconds: Int = 20_000
    ) {
        self.host = host
        self.port = port
        self.security = security
        self.proxy = proxy
        self.connectTimeoutMilliseconds = connectTimeoutMilliseconds
    }

    /// `host:port`
    package var string: String {
        host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The host without brackets.
    package var bareHost: String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// `http://host:port` or `https://host:port`
    package var url: String { (isSecure ? "https://" : "http://") + string }

    package var isSecure: Bool { security != .plaintext }
}

extension Transfer {
    /// Timeout, proxy and certificates.
    package func setConnection(_ security: TransportSecurity, _ proxy: ProxySetting, connectTimeoutMilliseconds: Int) {
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, connectTimeoutMilliseconds))
        switch proxy {
        case .environment: break
        case .none:
            set(CURLOPT_PROXY, "")
            // Nor is the environment read.
            set(CURLOPT_NOPROXY, "*")
        case .url(let url):
            set(CURLOPT_PROXY, url)
            // Otherwise the environment would take hosts out again.
            set(CURLOPT_NOPROXY, "")
        }
        guard case .tls(let options) = security else { return }
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let path = options.authoritiesPath {
            set(CURLOPT_CAINFO, path)
        } else {
            // OpenSSL reads it by default, libcurl does not.
            if let path = getenv("SSL_CERT_FILE") { set(CURLOPT_CAINFO, String(cString: path)) }
            if let path = getenv("SSL_CERT_DIR") { set(CURLOPT_CAPATH, String(cString: path)) }
        }
        if let path = options.clientCertificatePath { set(CURLOPT_SSLCERT, path) }
        if let path = options.clientKeyPath { set(CURLOPT_SSLKEY, path) }
        if let password = options.clientKeyPassword { set(CURLOPT_KEYPASSWD, password) }
        if options.trustsAnyCertificate {
            set(CURLOPT_SSL_VERIFYPEER, 0)
            set(CURLOPT_SSL_VERIFYHOST, 0)
        }
    }
}
