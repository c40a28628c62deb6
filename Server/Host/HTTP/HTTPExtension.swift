import HearthNetwork

/// Additional routes of the HTTP server: metrics, administration.
package protocol HTTPExtension: Sendable {
    /// Takes the exchange, or returns false when it isn't one of its routes.
    func begin(_ exchange: HTTPExchange) -> Bool
}
