import HearthModel

/// The identity that a token states: `request.auth` of security rules.
package struct ClientIdentity: Sendable {
    package var uid: String
    /// The token's claims, as Firestore passes them to rules.
    package var token: MapValue
    /// Nil for never.
    package var end: TokenEnd?
}
