import HearthConcurrency
import HearthModel

/// Memory for decoded requests. A request waits for it instead of failing.
///
/// Requests that become large and all others have memory of their own, so that no request waits behind one that is much
/// larger. What decides is the estimated decoded size, because it is what is taken: neither the size of the request nor
/// the thread that decodes it.
package final class WorkingMemory: Sendable {
    /// For requests that become large: in order.
    let large: OrderedWorkingMemory
    /// For all others: whoever holds little finds some at once.
    let common: CommonWorkingMemory

    init(largeBytesMax: Int, commonBytesMax: Int) {
        large = OrderedWorkingMemory(bytesMax: largeBytesMax)
        common = CommonWorkingMemory(bytesMax: commonBytesMax)
    }

    var bytesMax: Int { large.bytesMax + common.bytesMax }
    var usedBytes: Int { large.usedBytes + common.usedBytes }
    var waitingCount: Int { large.waitingCount + common.waitingCount }

    /// - Parameter granted: called when the memory is available: immediately on this thread, or later on the thread
    ///   that releases memory. It must not block. The memory counts as used until the share is freed.
    package func take(_ bytes: Int, for requester: Requester, _ granted: @escaping @Sendable (WorkingShare) -> Void) {
        if bytes > common.claimBytesMax {
            large.take(bytes, for: requester, granted)
        } else {
            common.take(bytes, for: requester, granted)
        }
    }

    /// Takes memory that is available immediately.
    /// - Returns: nil when the requester must wait.
    package func takeNow(_ bytes: Int, for requester: Requester) -> WorkingShare? {
        bytes > common.claimBytesMax
            ? large.takeNow(bytes, for: requester) : common.takeNow(bytes, for: requester)
    }
}

/// A part of the memory for decoded requests.
protocol WorkingPart: AnyObject, Sendable {
    func release(_ bytes: Int, of requester: Requester)
}

/// A request that waits for memory.
struct WorkingClaim: Sendable {
    let bytes: Int
    let requester: Requester
    let granted: @Sendable (WorkingShare) -> Void

    /// In the queue, compared with other claims.
    var cost: Int { max(1, bytes >> 10) }
}
