/// The exchanges of a run, and the first thing that differed from the model.
package final class TrafficRecord {
    /// All of them: requests of exchanges that the client has cancelled may still arrive.
    package private(set) var exchanges: [Int: Exchange] = [:]
    package private(set) var failure: String?
    /// Exchanges that ended well, and messages of WebSockets that came back.
    package private(set) var whole: [Exchange.Carrier: Int] = [:]
    /// Exchanges that ended otherwise.
    package private(set) var failed = 0
    package private(set) var cancelled = 0
    package private(set) var bytes = 0
    /// Of WebSockets; nil: not compressed.
    package var compressionThresholdBytes: Int?
    private var exchangeCount = 0

    package init() {}

    package func fail(_ description: String) { if failure == nil { failure = description } }

    package func newExchange(_ choices: Choices, canBeCall: Bool) -> Exchange {
        exchangeCount += 1
        let exchange = Exchange(number: exchangeCount, choices, canBeCall: canBeCall)
        exchanges[exchange.number] = exchange
        return exchange
    }

    // MARK: What the server's handler sees

    package func received(_ bytes: UnsafeRawBufferPointer, of exchange: Exchange) {
        self.bytes += bytes.count
        if let position = Content.firstDifference(exchange.requestKey, from: exchange.requestBytes, bytes) {
            fail("byte \(position) of the request is wrong: \(exchange.description)")
        }
        exchange.requestBytes += bytes.count
    }

    package func receivedEnd(of exchange: Exchange) {
        if exchange.requestBytes != exchange.requestSize {
            fail("the request ended too early or too late: \(exchange.description)")
        }
    }

    // MARK: What the client sees

    package func answered(_ bytes: UnsafeRawBufferPointer, of exchange: Exchange) {
        self.bytes += bytes.count
        if let position = Content.firstDifference(exchange.answerKey, from: exchange.answerBytes, bytes) {
            fail("byte \(position) of the answer is wrong: \(exchange.description)")
        }
        exchange.answerBytes += bytes.count
    }

    package func completed(_ exchange: Exchange) {
        if exchange.answerBytes != exchange.answerSize {
            fail("the answer is not whole, and ended as if it were: \(exchange.description)")
        }
        whole[exchange.carrier, default: 0] += 1
        finish(exchange)
    }

    package func completedMessage() { whole[.webSocket, default: 0] += 1 }

    package func failed(_ exchange: Exchange, _ reason: String) {
        if !exchange.mayFail { fail("failed without a cause (\(reason)): \(exchange.description)") }
        failed += 1
        finish(exchange)
    }

    package func cancelled(_ exchange: Exchange) {
        cancelled += 1
        finish(exchange)
    }

    private func finish(_ exchange: Exchange) {
        if exchange.isFinished { fail("ended twice: \(exchange.description)") }
        exchange.isFinished = true
    }
}
