import HearthWebSocket

typealias Event = WebSocketConnection.Event

func bytes(_ string: String) -> [UInt8] { Array(string.utf8) }

/// `81 05 48`
func hex(_ string: String) -> [UInt8] { string.split(separator: " ").compactMap { UInt8($0, radix: 16) } }

/// A hand-written frame, for input that no correct peer sends.
func frame(
    _ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reserved: UInt8 = 0, mask: [UInt8]? = [1, 2, 3, 4]
) -> [UInt8] {
    var frame = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    if payload.count < 126 {
        frame.append(maskBit | UInt8(payload.count))
    } else if payload.count < 65_536 {
        frame += [maskBit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    } else {
        frame.append(maskBit | 127)
        for shift in stride(from: 56, through: 0, by: -8) { frame.append(UInt8(payload.count >> shift & 255)) }
    }
    guard let mask else { return frame + payload }
    return frame + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
}

/// A frame from a server.
func serverFrame(_ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reserved: UInt8 = 0) -> [UInt8] {
    frame(opcode, payload, isFinal: isFinal, reserved: reserved, mask: nil)
}

/// The code with which a server (or a client) would close after these bytes; nil when they are valid.
func failureCode(
    _ input: [UInt8], role: WebSocketConnection.Role = .server, limits: WebSocketLimits = WebSocketLimits(),
    deflate: WebSocketDeflate? = nil
) -> WebSocketCloseCode? {
    let connection = WebSocketConnection(role: role, limits: limits, deflate: deflate)
    do throws(WebSocketFailure) {
        _ = try connection.receive(input)
        return nil
    } catch { return error.code }
}

/// The complete output of a connection for input in pieces.
struct Reading: Equatable {
    var events: [Event] = []
    var failure: WebSocketFailure?

    init(_ input: [UInt8], cuts: [Int], connection: WebSocketConnection) {
        do throws(WebSocketFailure) {
            for (start, end) in zip([0] + cuts, cuts + [input.count]) {
                try Array(input[start..<end]).withUnsafeBufferPointer { piece throws(WebSocketFailure) in
                    var position = 0
                    while let event = try connection.next(UnsafeRawBufferPointer(piece), &position) {
                        events.append(event)
                    }
                }
            }
        } catch { failure = error }
    }
}
