import HearthFirestoreServer
import HearthModel
import HearthWire

/// Both ends of a session, and an unreliable network between them.
struct WebChannelFuzzModel {
    private var session = WebChannelSession(id: "fuzz")
    private var said: [[UInt8]] = []
    private var receivedID: Int64 = 0
    private var deliveredCount = 0
    private var isOpen = false
    private var sentNumbers: Set<Int64> = []

    mutating func take(_ line: ArraySlice<UInt8>) {
        guard let first = line.first else { return }
        let rest = Array(line.dropFirst())
        switch first {
        case UInt8(ascii: "P"):
            do throws(Status) {
                let body = try ForwardBody(rest)
                for message in body.messages { sentNumbers.insert(message.number) }
                deliveredCount += try session.receive(body).count
                // Messages are accepted in the order of their numbers, each once.
                precondition(
                    (0..<Int64(deliveredCount)).allSatisfy(sentNumbers.contains), "a message that was not sent")
                precondition(!sentNumbers.contains(Int64(deliveredCount)), "a message that was due wasn't taken")
            } catch { precondition(error.code != .ok) }
        case UInt8(ascii: "A"):
            guard let id = ForwardBody.decimal(String(decoding: rest, as: UTF8.self)) else { return }
            // A client that acknowledges messages falsely loses them.
            session.acknowledge(id)
            receivedID = max(receivedID, min(id, session.lastID))
        case UInt8(ascii: "G"), UInt8(ascii: "L"):
            session.acknowledge(receivedID)
            session.attach(polls: first == UInt8(ascii: "L"))
            isOpen = true
        case UInt8(ascii: "D"):
            // Messages on the network are lost.
            while session.takeOutput() != nil {}
            session.detach()
            isOpen = false
        case UInt8(ascii: "S"):
            session.append(
                Array("[\"".utf8) + rest.filter { $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
                    + Array("\"]".utf8))
        case UInt8(ascii: "W"): read()
        case UInt8(ascii: "C"): session.close()
        default: break
        }
        precondition(session.queuedBytes >= 0, "less than nothing is queued")
        _ = session.answer
    }

    private mutating func read() {
        while let output = session.takeOutput() {
            precondition(isOpen, "something is written although the client does not read")
            let parts = output.bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
            precondition(parts.count == 2 && Int(String(decoding: parts[0], as: UTF8.self)) == parts[1].count)
            let ids: [Int64]
            do throws(Status) {
                ids = try Self.ids(Array(parts[1]))
            } catch { preconditionFailure("a frame can't be read: \(error)") }
            for id in ids {
                precondition(id == receivedID + 1, "array \(id) comes after \(receivedID)")
                receivedID = id
            }
            if output.endsBackChannel { isOpen = false }
        }
    }

    /// The ids of a frame's arrays.
    private static func ids(_ string: [UInt8]) throws(Status) -> [Int64] {
        let ids = string.withUnsafeBytes { bytes in
            Result { () throws(Status) in
                var reader = try JSONReader(bytes)
                var ids: [Int64] = []
                var isFirst = true
                try reader.openContainer(UInt8(ascii: "["))
                while try reader.nextElement(&isFirst) { ids.append(try id(&reader)) }
                try reader.endDocument()
                return ids
            }
        }
        return try ids.get()
    }

    /// Reads one array and returns its id.
    private static func id(_ reader: inout JSONReader) throws(Status) -> Int64 {
        var isFirst = true
        var id: Int64?
        try reader.openContainer(UInt8(ascii: "["))
        while try reader.nextElement(&isFirst) {
            let element = try reader.skipValue()
            id = id ?? ForwardBody.decimal(String(decoding: reader.bytes[element], as: UTF8.self))
        }
        guard let id else { throw .invalidArgument("no id") }
        return id
    }

    /// A client that returns receives all messages.
    mutating func check() {
        for _ in 0..<100_000 where receivedID < session.lastID {
            session.acknowledge(receivedID)
            session.attach(polls: false)
            isOpen = true
            read()
        }
        precondition(receivedID == session.lastID, "a message is lost")
    }
}
