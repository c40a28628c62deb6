import HearthModel

/// A call whose requests come as a stream, whatever carries it.
///
/// All callbacks come on the call's loop; none comes after `finish` or `onCancel`.
package protocol StreamCall: ServiceCall {
    /// One whole request.
    var onMessage: (([UInt8]) -> Void)? { get set }
    /// The client sends no more requests.
    var onHalfClose: (() -> Void)? { get set }
    /// What the client sends can't be read on. It comes behind the requests before, and the stream has to end with that status;
    /// without it, the call ends at once, as if the client had gone.
    var onFault: ((Status) -> Void)? { get set }
    /// The client has gone.
    var onCancel: (() -> Void)? { get set }
    /// No more requests until `resumeReading`.
    func pauseReading()
    func resumeReading()
}
