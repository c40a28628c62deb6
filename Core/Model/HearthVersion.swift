/// The version of the server, the tools and the clients.
package enum HearthVersion {
    /// Packages and programs take the number from here; nothing else has it.
    package static let string = "0.1.0"
}
