internal import Foundation
internal import HearthModel

/// One Firestore instance's share of an `Auth`, which several may watch.
final class AuthShare: AuthTokenProvider {
    private let auth: Auth

    init(_ auth: Auth) { self.auth = auth }

    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        try await auth.token(forcingRefresh: isForcingRefresh)
    }

    func observeUser(_ changed: (@Sendable (String?) -> Void)?) { auth.observeUser(changed, by: self) }
}

extension Status {
    /// Any error as a status: ours keep their code, all others are UNKNOWN.
    init(error: any Error) {
        if let status = error as? Status {
            self = status
        } else {
            self = Status(firestoreError: error as NSError) ?? Status(.unknown, error.localizedDescription)
        }
    }
}
