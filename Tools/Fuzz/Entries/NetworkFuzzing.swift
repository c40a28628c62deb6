import HearthNetwork
import HearthModel

/// Entry points for fuzzing the parsers of a peer's first bytes. A violated invariant traps.
package enum NetworkFuzzing {
    /// The parsers' results must not depend on the pieces.
    package static func fuzzHTTP1(_ bytes: [UInt8]) {
        let whole = events(of: bytes, pieceBytes: max(1, bytes.count))
        for pieceBytes in [1, 2, 3, 7] where pieceBytes < bytes.count {
            let cut = events(of: bytes, pieceBytes: pieceBytes)
            precondition(cut == whole, "HTTP/1.1 read in pieces of \(pieceBytes) bytes differs")
        }
        fuzzDeframer(bytes)
        _ = bytes.withUnsafeBytes { ProtocolDetector.detect($0) }
    }

    private static let limits: NetworkLimits = {
        var limits = NetworkLimits()
        // Small, so that short inputs exceed them.
        limits.headBytesMax = 512
        limits.headFieldsMax = 8
        limits.targetBytesMax = 64
        limits.chunkLineBytesMax = 32
        return limits
    }()

    /// The parser's events, with the pieces of a body joined.
    private static func events(of bytes: [UInt8], pieceBytes: Int) -> [HTTP1Parser.Event] {
        var parser = HTTP1Parser(limits: limits)
        var events: [HTTP1Parser.Event] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + pieceBytes)
            let isOver = Array(bytes[start..<end]).withUnsafeBytes { input in
                var position = 0
                while true {
                    let event = parser.next(input, &position)
                    precondition(position <= input.count, "the parser went beyond its input")
                    switch event {
                    case .needsMore: return false
                    case .body(let range):
                        precondition(!range.isEmpty && range.upperBound <= input.count, "a body outside of the input")
                        append(start + range.lowerBound..<start + range.upperBound, to: &events)
                    case .failure:
                        events.append(event)
                        return true
                    default: events.append(event)
                    }
                }
            }
            if isOver { break }
            start = end
        }
        return events
    }

    private static func append(_ range: Range<Int>, to events: inout [HTTP1Parser.Event]) {
        if case .body(let before) = events.last, before.upperBound == range.lowerBound {
            events[events.count - 1] = .body(before.lowerBound..<range.upperBound)
        } else {
            events.append(.body(range))
        }
    }

    private static func fuzzDeframer(_ bytes: [UInt8]) {
        func steps(pieceBytes: Int) -> [GRPCDeframer.Step] {
            var deframer = GRPCDeframer(messageBytesMax: 1_000)
            var steps: [GRPCDeframer.Step] = []
            for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
                Array(bytes[start..<min(bytes.count, start + pieceBytes)]).withUnsafeBytes { input in
                    var position = 0
                    while position < input.count {
                        let step = deframer.next(input, &position)
                        if step != .needsMore { steps.append(step) }
                        if case .failure = step { return }
                    }
                }
                if case .failure = steps.last { break }
            }
            return steps
        }
        let whole = steps(pieceBytes: max(1, bytes.count))
        for pieceBytes in [1, 3] { precondition(steps(pieceBytes: pieceBytes) == whole, "gRPC frames differ when cut") }
    }
}
