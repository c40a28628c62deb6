import HearthConcurrency
import HearthDocuments
import HearthModel

/// The pace of a read.
struct ReadPace {
    /// Whether the read is abandoned after some milliseconds.
    var isBrief = false
    /// The slice in which it gives way.
    var slice: WorkerSlice?

    func set(_ view: ReadView, _ check: @escaping () throws(Status) -> Void) {
        guard view.isPast else { return }
        let slice = slice
        view.budget =
            isBrief
            ? .brief()
            : .long { () throws(Status) in
                slice?.giveWay()
                try check()
            }
    }

    func set(_ meter: WorkMeter) {
        if isBrief { meter.beBrief() }
        if let slice { meter.giveWay = { slice.giveWay() } }
    }
}
