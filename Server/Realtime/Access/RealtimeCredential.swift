/// The credential of a client.
package enum RealtimeCredential: Sendable {
    case none
    /// The value of the header `Authorization`.
    case header(String)
    /// `auth=` of an address, `cred` of the socket's `auth`: an ID token, or an administrator's secret.
    case token(String)
    /// `access_token=` of an address, `cred` of the socket's `gauth`: an administrator's.
    case accessToken(String)
}
