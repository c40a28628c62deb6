import HearthConcurrency
import HearthModel

/// The calls of one loop whose compressed messages need more than one step. Together they get one millisecond of each
/// tick, round-robin between connections. Belongs to the loop.
///
/// Every second slice is for a message that has had none: the size of the output is unknown beforehand, and most
/// messages need only one slice. The others are decompressed one after the other, so that few of them are partly in
/// memory.
///
/// `@unchecked Sendable`: the loop's own jobs pass it back to the loop.
final class InflationQueue: @unchecked Sendable {
    private struct Entry {
        var call: GRPCCall
        var requester: Requester
    }

    private let loop: EventLoop
    private var new = FairQueue<Entry>()
    private var begun = FairQueue<Entry>()
    private var current: Entry?
    private var isSliceOfNew = false
    private var isScheduled = false
    private static let tickNanoseconds: UInt64 = 1_000_000

    init(_ loop: EventLoop) { self.loop = loop }

    func add(_ call: GRPCCall, for requester: Requester) {
        new.append(Entry(call: call, requester: requester), for: requester)
        goOnLater()
    }

    private var isEmpty: Bool { new.isEmpty && begun.isEmpty && current == nil }

    private func goOnLater() {
        guard !isScheduled, !isEmpty else { return }
        isScheduled = true
        loop.execute { [self] in
            isScheduled = false
            goOn()
            goOnLater()
        }
    }

    private func goOn() {
        isSliceOfNew.toggle()
        let end = loop.currentNanoseconds() + Self.tickNanoseconds
        while !isEmpty, loop.currentNanoseconds() < end {
            if isSliceOfNew || (current == nil && begun.isEmpty), let entry = new.popFirst() {
                if !unpack(entry.call, until: end) { begun.append(entry, for: entry.requester) }
            } else if let entry = current ?? begun.popFirst() {
                current = unpack(entry.call, until: end) ? nil : entry
            }
        }
    }

    /// True when the message is complete.
    private func unpack(_ call: GRPCCall, until end: UInt64) -> Bool {
        while !call.inflate() {
            if loop.currentNanoseconds() >= end { return false }
        }
        return true
    }
}
