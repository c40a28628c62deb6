/// The status strings of answers to requests. Source: the status tables of the public SDKs.
enum RealtimeStatus: String, Sendable {
    case ok
    case permissionDenied = "permission_denied"
    case dataIsStale = "datastale"
    case failure
    case tooBig = "too_big"
    case unavailable
    case expiredToken = "expired_token"
    case invalidToken = "invalid_token"
    case error
}
