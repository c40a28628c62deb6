import HearthModel

/// The identity that a token states: `request.auth` of security rules.
package struct ClientIdentity: Sendable {
    package var uid: String
    /// The token's claims, as Firestore passes them to rules.
    package var token: MapValue
    /// Nil for never.
    package var end: TokenEnd?
    /// The projects whose data the client may ask for: a token of one project is no identity in another.
    package var projects: TokenProjects
}

/// The projects that a token is for.
package enum TokenProjects: Sendable, Equatable {
    case all
    case only([String])

    package func contains(_ project: String) -> Bool {
        switch self {
        case .all: true
        case .only(let projects): projects.contains { UTF8Order.equal($0, project) }
        }
    }
}
