import CCurl
import Glibc

/// The delegate of a transfer. All methods except `transferProcesses` and `transferCompleted` are called within
/// libcurl. They only record, and call `Transfer.mark` to have `transferProcesses` called.
package protocol TransferDelegate: AnyObject {
    /// Whether the transfer may open a new connection. If not, it fails before any byte is sent.
    func transferMayConnect(_ transfer: Transfer) -> Bool
    /// The connection is open and the request is about to be sent; false ends the transfer before that.
    func transferIsReady(_ transfer: Transfer) -> Bool
    /// A line of the response's head or trailers, with its line end.
    func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer)
    /// Bytes of the response's body, which must be accepted: libcurl 7.88 can lose bytes at the end of the stream that
    /// it holds for a callback that pauses. Call `pauseReceiving` afterwards.
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer)
    /// Returns the next bytes of the request's body.
    func transfer(_ transfer: Transfer, fill buffer: UnsafeMutableRawBufferPointer) -> Transfer.Output
    /// libcurl gave up a stream because the server reported that it did not process it.
    func transferWasRefused(_ transfer: Transfer)
    /// libcurl has completed the transfer. Called outside of libcurl.
    func transferCompleted(_ transfer: Transfer, _ code: CURLcode)
    /// Follows a `mark`. Called outside of libcurl.
    func transferProcesses(_ transfer: Transfer)
}

extension TransferDelegate {
    package func transferMayConnect(_ transfer: Transfer) -> Bool { true }
    package func transferIsReady(_ transfer: Transfer) -> Bool { true }
    package func transfer(_ transfer: Transfer, fill buffer: UnsafeMutableRawBufferPointer) -> Transfer.Output { .end }
    package func transferWasRefused(_ transfer: Transfer) {}
}
