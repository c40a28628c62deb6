import HearthModel

/// A table by bytes, which are hashed in one piece.
struct ByteTable<Value> {
    private var entries: [ByteKey: Value] = [:]

    var isEmpty: Bool { entries.isEmpty }

    subscript(key: [UInt8]) -> Value? {
        get { entries[ByteKey(key)] }
        _modify { yield &entries[ByteKey(key)] }
    }

    subscript(key: [UInt8], default value: @autoclosure () -> Value) -> Value {
        get { entries[ByteKey(key), default: value()] }
        _modify { yield &entries[ByteKey(key), default: value()] }
    }
}
