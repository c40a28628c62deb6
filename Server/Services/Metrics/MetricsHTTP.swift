import HearthNetwork

/// `GET /metrics`
struct MetricsHTTP: HTTPExtension {
    let metrics: ServerMetrics

    func begin(_ exchange: HTTPExchange) -> Bool {
        guard exchange.head.path == "/metrics", exchange.head.method == "GET" || exchange.head.method == "HEAD" else {
            return false
        }
        exchange.respond(
            status: 200, headers: [HTTPHeader("content-type", MetricsText.contentType)], body: metrics.text())
        return true
    }
}
