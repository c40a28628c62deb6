import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments

/// Sends the messages of a source, at the client's speed.
///
/// Light sources run on the call's loop, some messages per tick, and wait for nobody. For other sources a worker first finds out whether
/// they take more than some milliseconds. Those that do run on other threads, one batch at a time, and never while an
/// earlier batch waits for the client. After that a source needs a long read. It is suspended while it waits for a long
/// read, and while its client takes nothing and others wait for one.
///
/// `@unchecked Sendable`: the source is used by the loop or by one worker, never by both; `isAsking` states which of
/// them, and belongs to the loop.
final class MessageStream: @unchecked Sendable {
    private static let batchMessagesMax = 256
    private static let batchBytesMax = 512 << 10
    /// A batch on a loop ends after this time, whatever it contains.
    private static let loopMilliseconds = 4
    /// The time for which a client may take nothing before its source releases its snapshot, even when no other read
    /// waits.
    private static let patienceMilliseconds = 1000

    private let call: any ServiceCall
    private let source: any MessageSource
    private let pool: WorkerPool
    private let reads: LongReads
    private let completion: (Status) -> Void
    private let now: () -> MonotonicTime
    private var isAsking = false
    /// Whether the source's snapshot belongs to a long read.
    private var isHeld = false
    /// Whether a worker has found out that the source takes time, or is about to.
    private var wasBrief = false
    private var suspension: Timer?
    /// The pending request for a long read.
    private var request: LongReadRequest?
    /// Everything is sent, or the source has failed. A later call of `proceed`, by a queued tick or a client that has
    /// capacity again, must not end it a second time.
    private var isOver = false

    private struct Batch: Sendable {
        var messages = MessageBatch()
        var isLast = false
        var failure: Status?
    }

    /// - Parameters:
    ///   - completion: called on the loop when everything is sent or the source has failed; nil: ends the call.
    ///   - now: the time, to limit the length of batches.
    init(
        _ source: any MessageSource, to call: any ServiceCall, pool: WorkerPool, reads: LongReads,
        completion: ((Status) -> Void)? = nil, now: @escaping () -> MonotonicTime = { .now }
    ) {
        self.now = now
        self.source = source
        self.call = call
        self.pool = pool
        self.reads = reads
        self.completion = completion ?? { call.finish($0) }
    }

    /// Sends everything. To be called on the loop.
    func start() {
        call.onWritable = nil
        proceed()
    }

    private func proceed() {
        guard !isOver, !isAsking, !call.isFinished else { return }
        suspension?.cancel()
        suspension = nil
        isAsking = true
        if source.isLight { return workHere() }
        do throws(Status) { try call.postpone() } catch { return end(error) }
        if !wasBrief, source.meter != nil {
            wasBrief = true
            // A source that waits for a worker holds no snapshot.
            source.suspend()
            workBriefly()
        } else if isHeld, !source.isSuspended {
            work(under: nil)
        } else if !source.isSuspended, let read = reads.take() {
            source.hold(read)
            isHeld = true
            work(under: nil)
        } else {
            source.suspend()
            waitForRead()
        }
    }

    /// Creates a batch on the loop. A source that is light waits for no long read of others: when none was free, it gets
    /// a snapshot for this tick only.
    private func workHere() {
        do throws(Status) {
            if source.isSuspended {
                try source.resume(nil)
                isHeld = false
            }
        } catch {
            return end(error)
        }
        deliver(makeBatch(until: now().advanced(milliseconds: Self.loopMilliseconds)))
    }

    private func waitForRead() {
        request = reads.whenFree(for: call.requester, cancellation: call.cancellation) { [self] result in
            switch result {
            // A read that is not used is released with this closure.
            case .success(let read): work(under: read)
            case .failure(let status): failed(status)
            }
        }
    }

    /// For tests: whether it holds no snapshot. Only while no thread works on it.
    var isSuspended: Bool { source.isSuspended }

    /// The call has ended: its pending read is left to others. To be called on the loop.
    func cancel() {
        request?.cancel()
        request = nil
    }

    /// Creates the first batch, unless that takes more than some milliseconds.
    private func workBriefly() {
        pool.run(
            .brief, for: call.requester, cancellation: call.cancellation, refused: { [self] in failed($0) }
        ) { [self] in
            do throws(Status) {
                if source.isSuspended { try source.resume(nil) }
            } catch {
                return failed(error)
            }
            source.meter?.beBrief()
            var batch = makeBatch(until: nil)
            source.meter?.takeTime()
            if batch.failure == WorkMeter.isHeavier { batch.failure = nil }
            source.suspend()
            call.loop.execute { [self, batch] in
                isHeld = false
                deliver(batch)
            }
        }
    }

    /// Creates a batch on a worker. Called by the owner of the source.
    private func work(under read: LongRead?) {
        pool.runInSlices(
            .long, for: call.requester, cancellation: call.cancellation, refused: { [self] in failed($0) }
        ) { [self] slice in
            do throws(Status) {
                if let read {
                    if source.isSuspended { try source.resume(read) } else { source.hold(read) }
                }
            } catch {
                return failed(error)
            }
            source.meter?.giveWay = { slice.giveWay() }
            let batch = makeBatch(until: nil)
            source.meter?.giveWay = nil
            call.loop.execute { [self] in
                isHeld = true
                deliver(batch)
            }
        }
    }

    private func failed(_ status: Status) {
        call.loop.execute { [self] in deliver(Batch(failure: status)) }
    }

    /// - Parameter end: of the batch, on a loop.
    private func makeBatch(until end: MonotonicTime?) -> Batch {
        var batch = Batch()
        do throws(Status) {
            while batch.messages.count < Self.batchMessagesMax, batch.messages.bytes.count < Self.batchBytesMax {
                guard try source.next(onLoop: end != nil, to: &batch.messages) else {
                    batch.isLast = end == nil || !source.isPaused
                    break
                }
                if let end, now() >= end { break }
            }
        } catch {
            batch.failure = error
        }
        return batch
    }

    private func deliver(_ batch: Batch) {
        if isOver { return }
        isAsking = false
        request = nil
        let hasCapacity = batch.messages.count == 0 || call.send(batch.messages)
        if let failure = batch.failure { return end(failure) }
        if batch.isLast { return end(.ok) }
        if call.isFinished { return end(.ok) }
        keep()
        if hasCapacity {
            call.loop.execute { [self] in proceed() }
        } else {
            waitForClient()
        }
    }

    /// The snapshot is needed after this batch.
    private func keep() {
        if source.isSuspended || isHeld { return }
        if let read = reads.take() {
            source.hold(read)
            isHeld = true
        } else {
            source.suspend()
        }
    }

    /// `onWritable` continues, and holds this object meanwhile.
    private func waitForClient() {
        call.onWritable = { [self] in proceed() }
        if reads.isScarce { return letGo() }
        suspension = call.loop.schedule(afterMilliseconds: Self.patienceMilliseconds) { [weak self] in
            guard let self, !self.isAsking else { return }
            self.letGo()
        }
    }

    private func letGo() {
        source.suspend()
        if source.isSuspended { isHeld = false }
    }

    private func end(_ status: Status) {
        isOver = true
        suspension?.cancel()
        call.onWritable = nil
        // The call may outlive its messages.
        source.suspend()
        completion(status)
    }
}
