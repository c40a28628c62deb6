import CCurl
import CNetlink
import Glibc
import HearthConcurrency
import HearthModel
import Synchronization

/// An object on the loop that must be notified of the loop's end: a call, stream, request or connection.
package protocol LoopActivity: AnyObject {
    /// Ends immediately with this status.
    func abort(_ status: Status)
}

/// The one thread that runs libcurl. A tick is: jobs from other threads, `curl_multi_perform`, ends of transfers,
/// marked transfers (events to users), timers, and then `curl_multi_poll` until there is new work.
///
/// `@unchecked Sendable`: the mailbox and the counters may be used by any thread, everything else by the loop's alone.
package final class TransportLoop: @unchecked Sendable {
    package let counters = TransportCounters()
    private let name: String
    private let mailbox = Mailbox()
    private let ended = Latch()
    package let multi: UnsafeMutableRawPointer
    /// Connections of plain requests; gRPC uses its own pools.
    private var pools: [ObjectIdentifier: ConnectionPool] = [:]
    private var plainPool: ConnectionPool?
    /// `pthread_t` of the loop's thread; 0 before it runs.
    private let threadNumber = Atomic<UInt>(0)
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    private var marked: [Transfer] = []
    private var activities: [ObjectIdentifier: any LoopActivity] = [:]
    private var watches: [DescriptorWatch] = []
    private var timers = TimerHeap<TransportTimer>()
    private var isStopping = false

    private static let globalCode: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    /// libcurl's own timers shorten it.
    private static let pollMillisecondsMax: UInt64 = 600_000

    package init(name: String, idleConnectionsMax: Int) throws(Status) {
        guard TransportLoop.globalCode == CURLE_OK, let multi = curl_multi_init() else {
            throw .unavailable("libcurl cannot be used")
        }
        self.name = name
        self.multi = multi
        curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, idleConnectionsMax)
    }

    deinit { curl_multi_cleanup(multi) }

    package func start() throws(Status) {
        let context = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<TransportLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw .resourceExhausted("cannot start a thread: \(String(cString: strerror(code)))")
        }
        pthread_detach(thread)
    }

    // MARK: From any thread

    var isCurrent: Bool { threadNumber.load(ordering: .relaxed) == pthread_self() }

    /// Runs a job on the loop's thread, never within this call. Returns false when the loop has ended.
    @discardableResult
    package func execute(_ job: @escaping @Sendable () -> Void) -> Bool {
        switch mailbox.put(job) {
        case .wantsWake: if !isCurrent { curl_multi_wakeup(multi) }
        case .queued: break
        case .closed: return false
        }
        return true
    }

    package func stop() {
        if isCurrent {
            isStopping = true
            abortAll()
        } else {
            execute { self.isStopping = true }
        }
    }

    func waitForEnd() { if !isCurrent { ended.wait() } }

    // MARK: The tick

    private func run() {
        setUpThread()
        while true {
            counters.ticks.add(1, ordering: .relaxed)
            for job in mailbox.takeAll() { job() }
            if isStopping { break }
            var running: Int32 = 0
            curl_multi_perform(multi, &running)
            takeMessages()
            processMarked()
            let now = Monotonic.nanoseconds()
            while !isStopping, let timer = timers.popDue(now) { timer.fire() }
            processMarked()
            if isStopping { break }
            // A transfer that was begun or resumed in this tick has set a timer in libcurl: the poll returns
            // immediately.
            if mailbox.isEmpty { poll() }
        }
        abortAll()
        for job in mailbox.close() { job() }
        abortAll()
        for timer in timers.removeAll() { timer.cancel() }
        marked = []
        // The multi handle stays: `execute` may be calling its wake-up. But it has no connections of its own.
        for pool in pools.values { pool.close() }
        pools = [:]
        plainPool = nil
        ended.open()
    }

    private func setUpThread() {
        threadNumber.store(pthread_self(), ordering: .relaxed)
        thread_set_name(name)
        // A peer that closes while OpenSSL writes would otherwise end the process; libcurl's own protection repeatedly
        // changes the signal handler of the whole process.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private func takeMessages() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
                let transfer = transfers[handle]
            else { continue }
            transfer.completed(curl_message_result(message))
        }
    }

    private func processMarked() {
        while !marked.isEmpty, !isStopping {
            let transfers = marked
            marked = []
            for transfer in transfers {
                transfer.isMarked = false
                transfer.process()
            }
        }
    }

    private func poll() {
        var timeout = TransportLoop.pollMillisecondsMax
        if let time = timers.earliestDeadline {
            let now = Monotonic.nanoseconds()
            // Rounded up: a tick that is too early would have nothing to do.
            timeout = time <= now ? 0 : min(timeout, (time - now + 999_999) / 1_000_000)
        }
        // Without events a descriptor is omitted: `poll` would report a broken connection again and again.
        let watched = watches.filter { $0.events != 0 }
        guard !watched.isEmpty else {
            curl_multi_poll(multi, nil, 0, Int32(timeout), nil)
            return
        }
        var descriptors = watched.map {
            curl_waitfd(fd: $0.descriptor, events: $0.events, revents: 0)
        }
        curl_multi_poll(multi, &descriptors, UInt32(descriptors.count), Int32(timeout), nil)
        for (watch, result) in zip(watched, descriptors) where result.revents != 0 && !watch.isCancelled {
            watch.onReady(result.revents)
        }
    }

    private func abortAll() {
        while let (_, activity) = activities.popFirst() {
            activity.abort(Status(.cancelled, "the connection to the server was shut down"))
        }
    }

    // MARK: On the loop's thread

    package func add(_ activity: any LoopActivity) {
        checkThread()
        activities[ObjectIdentifier(activity)] = activity
    }

    package func remove(_ activity: any LoopActivity) { activities[ObjectIdentifier(activity)] = nil }

    package func add(_ transfer: Transfer) -> Bool {
        checkThread()
        guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else { return false }
        transfers[transfer.handle] = transfer
        counters.transfers.add(1, ordering: .relaxed)
        return true
    }

    package func remove(_ transfer: Transfer) {
        checkThread()
        guard transfers.removeValue(forKey: transfer.handle) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle)
        counters.transfers.subtract(1, ordering: .relaxed)
    }

    package func makePool() throws(Status) -> ConnectionPool {
        checkThread()
        let pool = try ConnectionPool(counters: counters)
        pools[ObjectIdentifier(pool)] = pool
        return pool
    }

    /// Closes the pool's connections; no transfer may use it any more.
    package func close(_ pool: ConnectionPool) {
        checkThread()
        guard pools.removeValue(forKey: ObjectIdentifier(pool)) != nil else { return }
        pool.close()
    }

    /// Connections of requests that are not gRPC.
    func sharedPlainPool() throws(Status) -> ConnectionPool {
        if let plainPool { return plainPool }
        let pool = try makePool()
        plainPool = pool
        return pool
    }

    /// Calls `process` after libcurl's callbacks.
    package func mark(_ transfer: Transfer) {
        guard !transfer.isMarked else { return }
        transfer.isMarked = true
        marked.append(transfer)
    }

    package func schedule(afterMilliseconds milliseconds: Int, _ action: @escaping () -> Void) -> TransportTimer {
        let delay = UInt64(max(0, milliseconds)).multipliedReportingOverflow(by: 1_000_000).partialValue
        let timer = TransportTimer(deadline: Monotonic.nanoseconds() &+ delay, action)
        timers.insert(timer)
        return timer
    }

    package func cancelTimer(_ timer: TransportTimer) {
        timers.remove(timer)
        timer.cancel()
    }

    package func watch(_ watch: DescriptorWatch) { watches.append(watch) }

    package func unwatch(_ watch: DescriptorWatch) {
        watch.isCancelled = true
        watches.removeAll { $0 === watch }
    }

    func checkThread() { assert(isCurrent, "the transport's state belongs to its thread") }
}
