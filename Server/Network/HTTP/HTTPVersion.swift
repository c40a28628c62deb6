package enum HTTPVersion: Sendable, Hashable {
    case http1_0
    case http1_1
    case http2
}
