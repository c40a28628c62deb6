import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from the model to the binary form: see `ValueCursor`.
extension ProtobufWriter {
    /// Appends a value's members, without a length.
    package mutating func value(_ value: Value) {
        append(bound: ValueCursor.bound(value)) { $0.value(value) }
    }

    /// Appends a length and a value.
    mutating func nestedValue(_ element: Value) {
        let start = beginLength()
        value(element)
        endLength(start)
    }

    /// Appends an ArrayValue's members.
    mutating func array(_ elements: [Value]) {
        append(bound: ValueCursor.bound(elements)) { $0.array(elements) }
    }

    /// Appends a map's entries, each under `tag`: 0x0a in a MapValue, 0x12 in a Document or an AggregationResult.
    mutating func fields(_ map: MapValue, tag: UInt8) {
        append(bound: ValueCursor.bound(map)) { $0.fields(map, tag: tag) }
    }

    /// Appends the output of `body`, at most `bound` bytes.
    @inline(__always)
    mutating func append(bound: Int, _ body: (inout ValueCursor) -> Void) {
        if bound == 0 { return }
        reserve(bound)
        bytes.append(addingCapacity: bound) { span in
            span.withUnsafeMutableBufferPointer { buffer, count in
                guard let base = buffer.baseAddress else { return }
                let start = UnsafeMutableRawPointer(base + count)
                var cursor = ValueCursor(position: start)
                body(&cursor)
                count += cursor.position - start
                precondition(cursor.position - start <= bound, "the bound is too small")
            }
        }
    }
}
