/// The sending half of a stream.
package protocol RequestStream<Request>: AnyObject, Sendable {
    associatedtype Request: Sendable
    /// Queues a message. It has no effect after the end and never blocks.
    func send(_ request: Request)
    /// Half-closes: no request follows. The server then ends the stream.
    func finish()
    /// Ends the stream at once. No event follows, not even `closed`.
    func cancel()
    /// The receiver has worked on the next response. A stream that delivers faster than that may pause.
    func responseTaken()
}

extension RequestStream {
    package func responseTaken() {}
}
