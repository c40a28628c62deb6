import HearthModel

/// Lets a job yield. It belongs to that job and its thread.
package final class WorkerSlice {
    private let group: WorkerGroup
    private let requester: Requester
    private let sliceNanoseconds: Int64
    private var end: Int64

    init(_ group: WorkerGroup, _ requester: Requester, _ sliceNanoseconds: Int64) {
        self.group = group
        self.requester = requester
        self.sliceNanoseconds = sliceNanoseconds
        end = MonotonicTime.now.nanoseconds + sliceNanoseconds
    }

    /// Yields to waiting jobs when the job has run for its slice. Must not be called with a lock that others need.
    package func giveWay() {
        if MonotonicTime.now.nanoseconds < end { return }
        group.park(for: requester)
        end = MonotonicTime.now.nanoseconds + sliceNanoseconds
    }
}
