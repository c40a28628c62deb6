import HearthWebSocket

/// An entry point for fuzzing. A violated invariant traps.
package enum WebSocketFuzzing {
    private struct Reading: Equatable {
        var events: [WebSocketConnection.Event] = []
        var failure: WebSocketFailure?

        /// The content of a broken compressed message may be recognized as invalid UTF-8, or as too large, before or
        /// after the message is recognized as broken.
        static func == (one: Reading, other: Reading) -> Bool {
            guard one.events == other.events else { return false }
            let ofContent: [WebSocketCloseCode] = [.invalidPayload, .messageTooBig]
            if let first = one.failure, let second = other.failure, ofContent.contains(first.code) {
                return ofContent.contains(second.code)
            }
            return one.failure == other.failure
        }
    }

    /// The first byte selects the role and the negotiated extensions; the rest is the peer's input. The events must not
    /// depend on the pieces, and the connection must not hold more than its limit.
    package static func fuzz(_ bytes: [UInt8]) {
        guard let first = bytes.first else { return }
        let input = Array(bytes.dropFirst())
        let whole = read(input, first, pieceBytes: max(1, input.count))
        for pieceBytes in [1, 2, 7] where pieceBytes < input.count {
            precondition(read(input, first, pieceBytes: pieceBytes) == whole, "pieces of \(pieceBytes) bytes differ")
        }
        _ = WebSocketExtension.parse([String(decoding: input, as: UTF8.self)])
        repeatOutput(whole.events, first)
    }

    private static func connection(_ choice: UInt8, _ role: WebSocketConnection.Role) -> WebSocketConnection {
        let deflate =
            choice & 2 == 0
            ? nil : WebSocketDeflate(serverTakesOverContext: choice & 4 != 0, clientTakesOverContext: choice & 8 != 0)
        // Small, so that short inputs exceed it.
        let limits = WebSocketLimits(
            messageBytesMax: choice & 16 == 0 ? 1 << 20 : 300, fragmentsMax: 20, compressionThresholdBytes: 0)
        return WebSocketConnection(role: role, limits: limits, deflate: deflate)
    }

    private static func read(_ input: [UInt8], _ choice: UInt8, pieceBytes: Int) -> Reading {
        let connection = connection(choice, choice & 1 == 0 ? .server : .client)
        var reading = Reading()
        do throws(WebSocketFailure) {
            for start in stride(from: 0, to: input.count, by: pieceBytes) {
                let piece = Array(input[start..<min(input.count, start + pieceBytes)])
                try piece.withUnsafeBufferPointer { buffer throws(WebSocketFailure) in
                    let buffer = UnsafeRawBufferPointer(buffer)
                    var position = 0
                    while let event = try connection.next(buffer, &position) {
                        precondition(position <= buffer.count, "read beyond the input")
                        check(event, connection.limits)
                        reading.events.append(event)
                    }
                    precondition(position == buffer.count, "input was left")
                }
                precondition(connection.bufferedBytes <= connection.limits.messageBytesMax + 125, "kept too much")
            }
        } catch {
            precondition(error.code.isSendable, "a failure with a code that must not be sent")
            reading.failure = error
        }
        return reading
    }

    private static func check(_ event: WebSocketConnection.Event, _ limits: WebSocketLimits) {
        switch event {
        case .string(let string):
            precondition(string.count <= limits.messageBytesMax, "a text message is too long")
            precondition(String(validating: string, as: UTF8.self) != nil, "a text message isn't UTF-8")
        case .binary(let bytes): precondition(bytes.count <= limits.messageBytesMax, "a message is too long")
        case .ping(let payload), .pong(let payload): precondition(payload.count <= 125, "a control frame is too long")
        case .close(let code, _): precondition(code?.isSendable != false, "a code that must not be sent")
        }
    }

    /// An event of one end, sent by the other, must be received as the same event.
    private static func repeatOutput(_ events: [WebSocketConnection.Event], _ choice: UInt8) {
        let isServer = choice & 1 == 0
        let sender = connection(choice, isServer ? .client : .server)
        let receiver = connection(choice, isServer ? .server : .client)
        for event in events {
            let sent =
                switch event {
                case .string(let string): sender.send(string: string)
                case .binary(let bytes): sender.send(binary: bytes)
                case .ping(let payload): sender.ping(payload)
                case .pong(let payload): sender.pong(payload)
                case .close(let code, let reason): sender.close(code, reason: reason)
                }
            let received = try? receiver.receive(sent)
            precondition(received == [event], "what was sent isn't what was received")
        }
    }
}
