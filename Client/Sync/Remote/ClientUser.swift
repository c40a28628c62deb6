/// The signed-in user. Each user has their own queue of writes on this device.
package struct ClientUser: Hashable, Sendable {
    /// nil: nobody is signed in.
    package var uid: String?

    package init(uid: String? = nil) { self.uid = uid }
    package static let unauthenticated = ClientUser()
}
