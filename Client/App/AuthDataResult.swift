internal import Foundation

/// The result of signing in.
public final class AuthDataResult: Sendable {
    /// The signed-in user.
    public let user: User

    init(user: User) { self.user = user }
}
