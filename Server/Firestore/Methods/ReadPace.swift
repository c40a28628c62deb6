import HearthConcurrency
import HearthDocuments

/// The pace of a read.
struct ReadPace {
    /// Whether the read is abandoned after some milliseconds.
    var isBrief = false
    /// The slice in which it gives way.
    var slice: WorkerSlice?

    func set(_ meter: WorkMeter) {
        if isBrief { meter.beBrief() }
        if let slice { meter.giveWay = { slice.giveWay() } }
    }
}
