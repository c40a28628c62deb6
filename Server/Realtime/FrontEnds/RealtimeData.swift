/// JSON for clients: in memory while it is small, else in a file. A worker makes it, a loop sends it.
enum RealtimeData: Sendable {
    case memory([UInt8])
    case file(LargeJSON)

    static let null = RealtimeData.memory(Array("null".utf8))
}
