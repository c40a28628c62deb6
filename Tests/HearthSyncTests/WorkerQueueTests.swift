import Dispatch
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

@Suite("Worker queue and costs")
struct WorkerQueueTests {
    @Test("Timers fire at their time, unless they are cancelled")
    func timers() {
        let queue = WorkerQueue(label: "test")
        let fired = DispatchSemaphore(value: 0)
        queue.sync {
            queue.schedule(.indexBackfill, afterSeconds: 0) { Issue.record("it was cancelled") }.cancel()
            _ = queue.schedule(.garbageCollection, afterSeconds: 0.01) { fired.signal() }
            _ = queue.schedule(.onlineStateTimeout, afterSeconds: 1000) { Issue.record("it isn't time") }
        }
        #expect(fired.wait(timeout: .now() + .seconds(Patience.seconds)) == .success)
        #expect(queue.isScheduled(.onlineStateTimeout) && !queue.isScheduled(.garbageCollection))
        queue.sync { queue.cancelAllTimers() }
        #expect(!queue.isScheduled(.onlineStateTimeout))
    }

    @Test("Timers run in the order of time, up to the given one")
    func order() {
        let queue = WorkerQueue(label: "test", firesTimers: false)
        var names: [WorkerQueue.TimerName] = []
        queue.sync {
            for (name, seconds) in [
                (WorkerQueue.TimerName.listenStreamIdle, 60.0), (.onlineStateTimeout, 10), (.listenStreamBackoff, 0),
            ] {
                _ = queue.schedule(name, afterSeconds: seconds) { names.append(name) }
            }
        }
        queue.runDelayed(through: .onlineStateTimeout)
        #expect(names == [.listenStreamBackoff, .onlineStateTimeout])
        queue.runDelayed(through: nil)
        #expect(names.last == .listenStreamIdle)
    }

    @Test("The time since a stream's last attempt counts as waited")
    func backoff() {
        let clock = StoppedClock()
        let queue = WorkerQueue(label: "test", clock: clock, firesTimers: false)
        let backoff = StreamBackoff(queue, .listenStreamBackoff)
        /// Whether an attempt is made within a tenth of a second.
        func isMadeSoon() -> Bool {
            var events: [String] = []
            queue.sync {
                backoff.run { events.append("attempt") }
                _ = queue.schedule(.onlineStateTimeout, afterSeconds: 0.1) { events.append("timeout") }
            }
            queue.runDelayed(through: nil)
            return events == ["attempt", "timeout"]
        }
        #expect(isMadeSoon(), "the first one")
        backoff.growToMax()
        #expect(!isMadeSoon())
        clock.advance(seconds: 100)
        #expect(isMadeSoon())
        #expect(!isMadeSoon())
    }

    /// The cost of a change of one document for a view of many, in seconds of this thread.
    private func cost(of count: Int) -> Double {
        let query = ClientQuery.collection("c", orders: [("n", false)])
        let view = View(query, remoteKeys: [])
        var documents: [ResourcePath: ClientDocument] = [:]
        for id in 0..<count {
            let document = ClientDocument.found("c/\(id)", 1, ["n": .integer(Int64(id))])
            documents[document.key] = document
        }
        _ = view.apply(view.computeChanges(documents), TargetChange(isCurrent: true, added: Set(documents.keys)))
        var snapshot: ViewSnapshot?
        let start = threadSeconds()
        for round in 0..<300 {
            let document = ClientDocument.found("c/\(round * 7 % count)", 2, ["n": .integer(Int64(count - round))])
            snapshot = view.apply(view.computeChanges([document.key: document]), TargetChange(isCurrent: true)).snapshot
        }
        let used = threadSeconds() - start
        #expect(snapshot?.documents.count == count)
        return used
    }

    @Test("A change of a large view costs little more than of a small one")
    func views() {
        let small = cost(of: 500)
        let large = cost(of: 8000)
        // A cost proportional to the documents would be sixteen times as much.
        #expect(large < 5 * small, "\(small) s and \(large) s")
    }
}
