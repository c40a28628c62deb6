import HearthNetwork

/// Further routes beside those of the service: metrics, administration.
package protocol HTTPExtension: Sendable {
    /// Takes the exchange, or returns false when it isn't one of its routes.
    func begin(_ exchange: HTTPExchange) -> Bool
}
