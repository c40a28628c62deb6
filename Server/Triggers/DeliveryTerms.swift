/// Why an attempt failed.
package struct DeliveryFailure: Error, Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// The endpoint's answer.
        case status(Int)
        case timeout
        /// The answer was not whole, or no HTTP.
        case cut
        case unreachable
    }

    package let kind: Kind
    /// A sentence of ours. Logs have this: what an endpoint answers may quote data.
    package let reason: String
    /// The beginning of what the endpoint has answered; empty without.
    package let quote: String

    /// - Parameter quote: on one line; see `AnswerQuote`.
    package init(_ kind: Kind, _ reason: String, quote: String = "") {
        self.kind = kind
        self.reason = reason
        self.quote = quote
    }

    /// For administrators: the reason and the quote.
    package var message: String {
        quote.isEmpty ? reason : reason.dropLast(reason.hasSuffix(".") ? 1 : 0) + ": " + quote
    }

    /// Of an event that was too old before it was sent.
    static let notSent = DeliveryFailure(.unreachable, "Not sent.")

    /// As administrators see it.
    package var status: String {
        switch kind {
        case .status(let number): String(number)
        case .timeout: "timeout"
        case .cut: "cut"
        case .unreachable: "unreachable"
        }
    }
}

/// How one trigger's events are sent.
package struct DeliveryTerms: Sendable, Equatable {
    /// Whether a document's events are sent one after the other.
    package var isOrdered = true
    /// Requests under way at most.
    package var concurrency = 16
    package var minBackoffNanoseconds: UInt64 = 1_000_000_000
    package var maxBackoffNanoseconds: UInt64 = 600_000_000_000
    /// Attempts of an event that were answered; nil for any number.
    package var attemptsMax: Int?
    /// Whether an attempt that was answered otherwise than with success is made again.
    package var repeatsAnswers = true
    package var isPaused = false

    package init() {}

    /// The pause before the next attempt.
    /// - Parameters:
    ///   - attempts: that failed.
    ///   - retryAfter: what the endpoint asked for, which counts up to the longest pause.
    func pause(after attempts: Int, _ retryAfter: UInt64?, _ jitter: Double) -> UInt64 {
        let doubled = minBackoffNanoseconds.multipliedReportingOverflow(by: 1 << UInt64(min(attempts - 1, 40)))
        let pause = doubled.overflow ? maxBackoffNanoseconds : min(maxBackoffNanoseconds, doubled.partialValue)
        return max(UInt64(Double(pause) * jitter), min(retryAfter ?? 0, maxBackoffNanoseconds))
    }
}
