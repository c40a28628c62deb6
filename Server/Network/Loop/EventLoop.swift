import CCrash
import CLinux
import Glibc
import HearthConcurrency
import HearthModel
import Synchronization

/// One thread that waits on epoll and runs what became ready: sockets, jobs from other threads, timers.
///
/// A tick of the loop is: wait, handle the ready sockets, run the jobs handed in, run the timers that are due, and
/// at last flush every channel that has something to send, so that a connection costs at most one `send` a tick
/// however many answers it got.
///
/// `@unchecked Sendable`: all mutable state but the inbox belongs to the loop's own thread; the inbox is behind a
/// mutex.
package final class EventLoop: @unchecked Sendable {
    /// A small number that identifies a loop of a server.
    package let index: Int
    /// For faults of the program that are found on this loop.
    package let brokenInvariants: BrokenInvariants
    private let inbox = Mailbox()
    private let epollDescriptor: Int32
    private let wakeDescriptor: Int32
    private let threadIdentifier = Atomic<UInt>(0)
    private var thread = pthread_t()
    /// The time of a simulation; nil: the system's.
    private let simulatedNanoseconds: (() -> UInt64)?

    // Below: only the loop's own thread.
    private var timers = TimerHeap<Timer>()
    private var dirtyChannels: [SocketChannel] = []
    /// Sources closed in this tick. Events that the kernel reported before the close may still point at them.
    private var closedSources: [EventSource] = []
    private var isStopping = false
    private var shares = TickShares()
    private var areSharesDue = false
    /// What the loop does, for the last lines of a process that a fault ends.
    private var activity: UnsafeMutablePointer<hearth_activity>?
    private var dateString = HTTPDate()
    /// Monotonic time at the beginning of this tick.
    private(set) var now: UInt64 = 0
    /// Input of whichever channel is being read; per loop, so that an idle connection owns no buffer.
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: EventLoop.readBufferBytes, alignment: 16)
    let scratch = OutputScratch(capacity: EventLoop.scratchBytes)

    static let readBufferBytes = 128 * 1024
    static let scratchBytes = 160 * 1024
    private static let eventsPerWait = 256

    /// Creates the loop; nothing runs before `start()`.
    ///
    /// - Parameter simulatedNanoseconds: the time of a simulation, whose loop never starts: see `simulate`.
    package init(
        index: Int = 0, brokenInvariants: BrokenInvariants = BrokenInvariants(),
        simulatedNanoseconds: (() -> UInt64)? = nil
    ) throws(Status) {
        self.index = index
        self.brokenInvariants = brokenInvariants
        self.simulatedNanoseconds = simulatedNanoseconds
        epollDescriptor = linux_epoll_new()
        wakeDescriptor = linux_eventfd_new()
        // Edge-triggered: each signal is reported once, and the counter never has to be read.
        guard epollDescriptor >= 0, wakeDescriptor >= 0,
            linux_epoll_change(epollDescriptor, EPOLL_CTL_ADD, wakeDescriptor, linux_epoll_in | linux_epoll_et, nil)
                == 0
        else {
            throw .unavailable("cannot create an event loop: \(SystemError.last.string)")
        }
    }

    deinit {
        close(epollDescriptor)
        close(wakeDescriptor)
        readBuffer.deallocate()
    }

    // MARK: Any thread

    /// True on the loop's own thread.
    package var isCurrent: Bool { threadIdentifier.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// The loop whose thread this is.
    package static var current: EventLoop? {
        guard let pointer = pthread_getspecific(currentLoopKey) else { return nil }
        return Unmanaged<EventLoop>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// The clock of deadlines and timers, in nanoseconds since some fixed moment.
    package static func monotonicNanoseconds() -> UInt64 { linux_monotonic_nanoseconds() }

    /// The time of this loop: that of `monotonicNanoseconds`, except in a simulation.
    package func currentNanoseconds() -> UInt64 { simulatedNanoseconds?() ?? linux_monotonic_nanoseconds() }

    /// Runs a job on the loop, soon, after what was handed in before it. Dropped once the loop has stopped.
    package func execute(_ job: @escaping @Sendable () -> Void) {
        if inbox.put(job) == .wantsWake && !isCurrent { wake() }
    }

    /// Runs a job on the loop once the time has passed.
    @discardableResult
    package func schedule(afterMilliseconds milliseconds: Int, _ job: @escaping @Sendable () -> Void)
        -> Timer
    {
        let deadline = currentNanoseconds() + UInt64(max(0, milliseconds)) * 1_000_000
        return schedule(atNanoseconds: deadline, job)
    }

    @discardableResult
    func schedule(atNanoseconds deadline: UInt64, _ job: @escaping @Sendable () -> Void) -> Timer {
        let timer = Timer(loop: self, deadline: deadline, job: job)
        if isCurrent { timers.insert(timer) } else { execute { self.timers.insert(timer) } }
        return timer
    }

    func cancel(_ timer: Timer) {
        if isCurrent { timers.remove(timer) } else { execute { self.timers.remove(timer) } }
    }

    /// Starts the thread. Once only.
    package func start() throws(Status) {
        // The thread owns one reference to its loop until it ends.
        let context = Unmanaged.passRetained(self).toOpaque()
        let result = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context)
        guard result == 0 else {
            Unmanaged<EventLoop>.fromOpaque(context).release()
            throw .unavailable("cannot start a thread: \(SystemError(code: result).string)")
        }
    }

    /// Ends the loop and waits for its thread. Not to be called on a loop's own thread.
    package func stopAndJoin() {
        precondition(!isCurrent, "an event loop cannot wait for itself")
        execute { self.isStopping = true }
        pthread_join(thread, nil)
    }

    private func wake() {
        // Fails only when the counter is full, and then the loop is awake already.
        _ = linux_eventfd_signal(wakeDescriptor)
    }

    // MARK: The loop's thread

    package func register(_ source: EventSource, events: UInt32) -> Bool {
        guard !source.isSimulated else { return true }
        return linux_epoll_change(
            epollDescriptor, EPOLL_CTL_ADD, source.descriptor, events, Unmanaged.passUnretained(source).toOpaque()) == 0
    }

    func change(_ source: EventSource, events: UInt32) {
        guard !source.isSimulated else { return }
        _ = linux_epoll_change(
            epollDescriptor, EPOLL_CTL_MOD, source.descriptor, events, Unmanaged.passUnretained(source).toOpaque())
    }

    /// Takes the source out and leaves its descriptor open, for another source.
    func unregister(_ source: EventSource) {
        if !source.isSimulated {
            _ = linux_epoll_change(epollDescriptor, EPOLL_CTL_DEL, source.descriptor, 0, nil)
        }
        closedSources.append(source)
    }

    /// Takes the source out and closes its descriptor; the object lives to the end of the tick.
    func unregisterAndClose(_ source: EventSource) {
        unregister(source)
        forgetClient(source.descriptor)
        if !source.isSimulated { close(source.descriptor) }
    }

    /// Has the channel flushed at the end of this tick.
    func flushLater(_ channel: SocketChannel) { dirtyChannels.append(channel) }

    /// The `date` field of HTTP answers, formatted once a second.
    func currentDate() -> [UInt8] { dateString.current() }

    private func run() {
        beginThread()
        linux_set_thread_name("hearth-loop-\(index)")
        activity = hearth_activity_new()
        defer {
            hearth_activity_free(activity)
            activity = nil
        }
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: EventLoop.eventsPerWait)
        defer { events.deallocate() }
        while !isStopping {
            let count = epoll_wait(
                epollDescriptor, events, Int32(EventLoop.eventsPerWait), timeoutMilliseconds())
            now = currentNanoseconds()
            shares.beginTick()
            for position in 0..<Int(max(0, count)) {
                // No context: the wake-up descriptor, whose job is done by having woken us.
                guard let context = linux_epoll_context(events + position) else { continue }
                let source = Unmanaged<EventSource>.fromOpaque(context).takeUnretainedValue()
                note(HEARTH_WORK_READ, source.descriptor)
                source.handleEvents(linux_epoll_events(events + position))
            }
            finishTick()
        }
        endThread()
    }

    private func beginThread() {
        threadIdentifier.store(UInt(pthread_self()), ordering: .relaxed)
        pthread_setspecific(currentLoopKey, Unmanaged.passUnretained(self).toOpaque())
    }

    /// What follows the events of a tick.
    private func finishTick() {
        note(HEARTH_WORK_JOB)
        runJobs()
        note(HEARTH_WORK_TIMER)
        runTimers()
        flushChannels()
        note(HEARTH_WORK_NONE)
        closedSources.removeAll(keepingCapacity: true)
    }

    private func endThread() {
        _ = inbox.close()
        timers.removeAll()
        dirtyChannels.removeAll()
        shares = TickShares()
        closedSources.removeAll()
        pthread_setspecific(currentLoopKey, nil)
        threadIdentifier.store(0, ordering: .relaxed)
    }

    // MARK: Simulation

    /// Makes the calling thread the loop's own during `body`, which calls `simulateTick`. Once only, instead of `start`.
    package func simulate<Result>(_ body: () throws -> Result) rethrows -> Result {
        beginThread()
        defer { endThread() }
        return try body()
    }

    /// One tick. `events` reports to the channels what happened to their sockets.
    package func simulateTick(_ events: () -> Void) {
        now = currentNanoseconds()
        shares.beginTick()
        events()
        finishTick()
    }

    /// When the next tick is due without events of sockets; nil: never.
    package var nextTickNanoseconds: UInt64? {
        dirtyChannels.isEmpty && inbox.isEmpty ? timers.earliestDeadline : now
    }

    private func timeoutMilliseconds() -> Int32 {
        if !dirtyChannels.isEmpty || !inbox.isEmpty { return 0 }
        guard let deadline = timers.earliestDeadline else { return -1 }
        let current = currentNanoseconds()
        guard deadline > current else { return 0 }
        // Rounded up: to wake early would mean to spin until the deadline.
        return Int32(clamping: (deadline - current + 999_999) / 1_000_000)
    }

    private func runJobs() {
        for job in inbox.takeAll() { job() }
    }

    private func runTimers() {
        while let timer = timers.popDue(now) { timer.fire() }
    }

    /// What becomes dirty during the flush waits for the next tick, which then doesn't sleep.
    private func flushChannels() {
        guard !dirtyChannels.isEmpty else { return }
        let channels = dirtyChannels
        dirtyChannels = []
        for channel in channels {
            note(HEARTH_WORK_SEND, channel.descriptor)
            channel.flush()
        }
    }

    // MARK: Accounts

    /// Runs work of an account's connection now if the account has some of its part of this tick left.
    /// - Returns: false when the work must wait: see `workLater`.
    func work(for account: UInt64, limitNanoseconds: UInt64, _ body: () -> Void) -> Bool {
        guard shares.admits(account, limitNanoseconds: limitNanoseconds) else { return false }
        count(account, body)
        return true
    }

    /// Runs work of an account's connection in a later tick, after what the account has handed in before: in the next one
    /// if the account's part of it suffices.
    func workLater(for account: UInt64, limitNanoseconds: UInt64, _ job: @escaping () -> Void) {
        shares.append(job, for: account)
        workLater(limitNanoseconds)
    }

    private func workLater(_ limitNanoseconds: UInt64) {
        guard !areSharesDue else { return }
        areSharesDue = true
        execute { [self] in
            areSharesDue = false
            // What is handed in meanwhile is for the next tick.
            for (account, countMax) in shares.due {
                for _ in 0..<countMax {
                    guard let job = shares.next(of: account, limitNanoseconds: limitNanoseconds) else { break }
                    count(account, job)
                }
            }
            if !shares.isEmpty { workLater(limitNanoseconds) }
        }
    }

    private func count(_ account: UInt64, _ body: () -> Void) {
        let begin = currentNanoseconds()
        body()
        shares.add(currentNanoseconds() - begin, to: account)
    }

    // MARK: Activity

    @inline(__always)
    private func note(_ work: hearth_work, _ descriptor: Int32 = -1) {
        guard let activity else { return }
        activity.pointee.descriptor = descriptor
        activity.pointee.work = work.rawValue
    }

    /// Another connection may get the number.
    private func forgetClient(_ descriptor: Int32) {
        guard let activity, activity.pointee.request_descriptor == descriptor else { return }
        activity.pointee.request_descriptor = -1
    }

    /// Notes that a request begins, of the connection that is being read.
    /// - Parameter path: without a query, which may have a token.
    func note(method: String, path: String) {
        guard let activity else { return }
        activity.pointee.request_length = 0
        activity.pointee.request_descriptor = activity.pointee.descriptor
        var count = 0
        withUnsafeMutableBytes(of: &activity.pointee.request) { bytes in
            for part in [method, " ", path] {
                for byte in part.utf8.prefix(bytes.count - count) {
                    bytes[count] = byte
                    count += 1
                }
            }
        }
        activity.pointee.request_length = UInt32(count)
    }
}

/// Thread-specific data rather than a thread-local of C: a `static` one would exist once an object file.
private let currentLoopKey: pthread_key_t = {
    var key = pthread_key_t()
    precondition(pthread_key_create(&key, nil) == 0, "no thread-specific key is left")
    return key
}()
