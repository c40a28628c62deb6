/// The type of a frame. Source: RFC 6455, 5.2.
enum WebSocketOpcode: UInt8 {
    case continuation = 0
    case string = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool { rawValue >= 8 }
}
