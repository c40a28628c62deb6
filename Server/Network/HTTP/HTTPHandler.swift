/// Handles HTTP requests. `begin` is called on the loop's thread when a head is complete.
package protocol HTTPHandler: Sendable {
    func begin(_ exchange: HTTPExchange)
}
