import HearthModel

/// Well-known types in the form of the objects that their protos declare. Proto3 JSON does not allow it, but bundles
/// contain it.
extension JSONFieldDecoder {
    /// `{"seconds": "1714557610", "nanos": 5}`: each member is optional, and a number with or without quotes.
    mutating func readTimestampObject() throws(Status) -> TimestampMessage {
        var time = TimestampMessage()
        try readObject("google.protobuf.Timestamp") { decoder throws(Status) in
            if decoder.keyMatches("seconds") {
                if try !decoder.reader.takeNull() {
                    time.seconds = try decoder.reading("seconds") { decoder throws(Status) in try decoder.readInt64() }
                }
            } else if decoder.keyMatches("nanos") {
                if try !decoder.reader.takeNull() {
                    time.nanos = try decoder.reading("nanos") { decoder throws(Status) in try decoder.readInt32() }
                }
            } else {
                throw decoder.unknownName()
            }
        }
        return time
    }

    /// A number, or `{"value": 2}` where such forms are accepted.
    mutating func readWrappedInt32() throws(Status) -> Int32 {
        guard takesObjectForms, reader.peek() == UInt8(ascii: "{") else { return try readInt32() }
        var number: Int32 = 0
        try readObject("google.protobuf.Int32Value") { decoder throws(Status) in
            guard decoder.keyMatches("value") else { throw decoder.unknownName() }
            if try !decoder.reader.takeNull() {
                number = try decoder.reading("value") { decoder throws(Status) in try decoder.readInt32() }
            }
        }
        return number
    }
}
