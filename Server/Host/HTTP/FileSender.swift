import HearthConcurrency
import HearthModel
import HearthNetwork

/// Sends a file at the client's speed: a thread reads a piece, the loop sends it. The response has begun before.
///
/// `@unchecked Sendable`: belongs to the exchange's loop, except the file, which does not change.
package final class FileSender: @unchecked Sendable {
    private static let pieceBytes: Int64 = 64 << 10

    private let file: SpillFile
    private let exchange: HTTPExchange
    private let readers: WorkerGroup
    private let requester: Requester
    private let ended: (Status) -> Void
    private var position: Int64 = 0
    private var isReading = false
    /// Bytes to send after the file.
    package var tail: [UInt8] = []
    /// Transforms each piece before it is sent.
    package var form: (@Sendable ([UInt8]) -> [UInt8])?

    /// - Parameters:
    ///   - readers: threads that read files.
    ///   - ended: called with the result, unless the client disconnected before.
    package init(
        _ file: SpillFile, _ exchange: HTTPExchange, _ readers: WorkerGroup, for requester: Requester,
        ended: @escaping (Status) -> Void
    ) {
        self.file = file
        self.exchange = exchange
        self.readers = readers
        self.requester = requester
        self.ended = ended
    }

    package func proceed() {
        if isReading || exchange.isFinished { return }
        let range = position..<min(position + Self.pieceBytes, file.count)
        if range.isEmpty {
            ended(.ok)
            if !tail.isEmpty { exchange.write(tail) }
            return exchange.end()
        }
        position = range.upperBound
        let form = form
        let read = { @Sendable [file] () throws(Status) in
            let piece = try file.read(range)
            return form?(piece) ?? piece
        }
        guard !file.isInMemory else { return deliver(Result(catching: read)) }
        isReading = true
        readers.run(for: requester, refused: { [self] status in arrived(.failure(status)) }) { [self] in
            arrived(Result(catching: read))
        }
    }

    private func arrived(_ piece: Result<[UInt8], Status>) {
        exchange.loop.execute { [self] in
            isReading = false
            deliver(piece)
        }
    }

    private func deliver(_ piece: Result<[UInt8], Status>) {
        if exchange.isFinished { return }
        switch piece {
        case .success(let bytes):
            let hasCapacity = exchange.write(bytes)
            if hasCapacity {
                exchange.loop.execute { [self] in proceed() }
            } else {
                exchange.onWritable = { [self] in
                    exchange.onWritable = nil
                    proceed()
                }
            }
        case .failure(let status):
            // The head was sent already; only an aborted response informs the client.
            ended(status)
            exchange.abort()
        }
    }
}
