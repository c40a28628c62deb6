import HearthNetwork
import HearthWire

/// The encoding of a call's messages.
package enum MessageFormat: Sendable {
    case protobuf
    case json(JSONOptions)

    package var isJSON: Bool {
        if case .json = self { true } else { false }
    }

    package func encode(_ message: some WireMessage) -> [UInt8] {
        switch self {
        case .protobuf: message.protobuf()
        case .json(let options): message.json(options)
        }
    }
}

extension MessageBatch {
    package mutating func append(_ message: some WireMessage, _ format: MessageFormat) {
        append(format.encode(message))
    }
}
