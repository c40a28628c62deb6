/// The framing of responses.
protocol AnswerFraming: Sendable {
    /// The response at the beginning of some bytes; nil when it is incomplete.
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer?
}

struct FramedAnswer: Equatable {
    var sizeBytes: Int
    /// The error of the response.
    var failure: String?
}
