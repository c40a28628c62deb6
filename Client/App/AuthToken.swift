/// The signed-in user and their token.
public struct AuthToken: Hashable, Sendable {
    /// The user's id. It identifies the queue of writes on this device: each user has their own.
    public var uid: String
    /// Sent as `Authorization: Bearer …`.
    public var token: String

    /// A token of a user.
    /// - Parameters:
    ///   - uid: the user's id.
    ///   - token: sent as `Authorization: Bearer …`.
    public init(uid: String, token: String) {
        self.uid = uid
        self.token = token
    }
}
