import HearthModel

/// A call with a stream of requests, over any transport.
///
/// All callbacks run on the call's loop; none runs after `finish` or `onCancel`.
package protocol StreamCall: ServiceCall {
    /// One complete request.
    var onMessage: (([UInt8]) -> Void)? { get set }
    /// The client sends no more requests.
    var onHalfClose: (() -> Void)? { get set }
    /// Called when the client's data cannot be parsed any further. It is called after all earlier requests, and the
    /// stream must end with this status. Without a handler, the call ends immediately, as if the client had
    /// disconnected.
    var onFault: ((Status) -> Void)? { get set }
    /// The client has disconnected.
    var onCancel: (() -> Void)? { get set }
    /// Delivers no more requests until `resumeReading`.
    func pauseReading()
    func resumeReading()
}
