/// One request and its answer as the model has decided them, and how much of both has arrived.
///
/// `@unchecked Sendable`: used by the thread of its run.
package final class Exchange: @unchecked Sendable {
    package enum Kind: Int { case http, call }

    package enum Carrier: String, CaseIterable, Sendable {
        case http2 = "HTTP/2"
        case grpc = "gRPC"
        case http1 = "HTTP/1.1"
        case webSocket = "WebSocket"
    }

    /// When the handler begins its answer.
    package enum Beginning: Int { case atHead, atFirstBytes, atEnd }

    package let number: Int
    package let kind: Kind
    package let carrier: Carrier
    /// The parts in which the client sends the body; for a call, its messages.
    package let request: [Int]
    /// The parts in which the handler writes the body; for a call, its messages.
    package let answer: [Int]
    package let beginning: Beginning
    /// The answer is one call of the handler, with its length.
    package let isWhole: Bool
    /// Bytes of a trailer's value; a call with one fails with a message. 0: none.
    package let trailerBytes: Int
    /// Bytes of a field of the answer's head.
    package let headBytes: Int
    /// The handler waits for space; otherwise it writes all at once.
    package let isPatient: Bool
    /// Milliseconds between two parts of the answer.
    package let pauseMilliseconds: Int
    /// The handler stops reading for so many milliseconds after the first bytes.
    package let readingPauseMilliseconds: Int
    /// The handler aborts the answer before this part.
    package let abortsBefore: Int?
    /// The client ends the exchange once it has so many bytes of the answer.
    package let cancelsAfter: Int?

    // What has happened.
    package var sentParts = 0
    package var hasBegun = false
    package var requestBytes = 0
    package var answerBytes = 0
    package var messages = 0
    package var isPaused = false
    package var isFinished = false
    /// Something allows the exchange to end with an error.
    package var mayFail = false

    package init(number: Int, _ choices: Choices, canBeCall: Bool) {
        self.number = number
        kind = canBeCall && choices.chance(40) ? .call : .http
        carrier = kind == .call ? .grpc : canBeCall ? .http2 : .http1
        request = choices.chance(50) ? [] : choices.pieces(totalMax: 400 << 10)
        answer = choices.pieces(totalMax: choices.isOne(in: 30) ? 3 << 20 : 512 << 10)
        beginning = choices.chance(70) ? .atEnd : choices.pick([.atHead, .atFirstBytes])
        isWhole = kind == .http && choices.chance(40)
        trailerBytes = choices.chance(60) ? 0 : choices.size(atMost: 40 << 10)
        headBytes = choices.isOne(in: 6) ? choices.size(atMost: 40 << 10) : 0
        isPatient = choices.chance(70)
        pauseMilliseconds = choices.isOne(in: 5) ? choices.below(4) : 0
        readingPauseMilliseconds = choices.isOne(in: 6) ? choices.between(1...5) : 0
        abortsBefore = choices.isOne(in: 12) && !isWhole ? choices.below(answer.count + 1) : nil
        cancelsAfter = choices.isOne(in: 8) ? choices.below(max(1, answer.reduce(0, +))) : nil
        mayFail = abortsBefore != nil
    }

    package var requestSize: Int { request.reduce(0, +) }
    package var answerSize: Int { answer.reduce(0, +) }
    /// The keys of the contents.
    package var requestKey: Int { 2 * number }
    package var answerKey: Int { 2 * number + 1 }

    /// Of a call; longer ones would be shortened.
    package var statusMessage: String { Content.string(requestKey, count: min(1_000, trailerBytes)) }
    package var trailer: String { Content.string(answerKey, count: trailerBytes) }

    package var description: String {
        "exchange \(number) (\(kind), request \(request), answer \(answer), \(beginning)\(isWhole ? ", whole" : ""), "
            + "trailer \(trailerBytes), head \(headBytes)\(isPatient ? "" : ", impatient"), "
            + "pauses \(pauseMilliseconds)/\(readingPauseMilliseconds), abort \(abortsBefore.map(String.init) ?? "-"), "
            + "cancel \(cancelsAfter.map(String.init) ?? "-")): "
            + "sent \(sentParts) parts, arrived \(requestBytes), answered \(answerBytes)"
    }
}
