/// The reason why a connection is closed: a client of this protocol does not send such input.
package struct RealtimeFault: Error, Equatable {
    enum Kind {
        case malformed, tooLarge
        /// The server holds too much data already: the client may reconnect later.
        case busy
    }

    var kind: Kind
    var reason: String

    static let busy = RealtimeFault(kind: .busy, reason: "The server holds too many unfinished messages.")
}
