#if DEBUG
import Glibc

/// Runs threads one at a time, in an order that a seed determines, to find errors that few orders show.
///
/// For tests only; release builds do not contain it. The participating threads switch at each step of a `Monitor`, at
/// the start and the end of a `NamedThread`, and at `Interleaving.point()`. This type decides which thread gets a lock,
/// before the system is asked. The clock of the threads jumps to the earliest deadline when all of them wait, and
/// sometimes earlier. One seed is therefore one order, under any load of the machine. A deadlock ends the process with
/// the seed.
package final class Interleaving: @unchecked Sendable {
    private enum Condition {
        case ready
        case locking(ObjectIdentifier)
        case waiting(ObjectIdentifier, until: Int64?)
        case joining(Int)
        case over
    }

    // Guards the fields below.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let switched = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var threads: [Condition] = []
    private var running = -1
    private var owners: [ObjectIdentifier: Int] = [:]
    private var state: UInt64
    private var nanoseconds: Int64 = 1
    /// The number of switches to another thread.
    package private(set) var switches = 0

    private let seed: UInt64

    private init(seed: UInt64) {
        self.seed = seed
        state = seed
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(switched, nil)
    }

    deinit {
        pthread_cond_destroy(switched)
        pthread_mutex_destroy(mutex)
        switched.deallocate()
        mutex.deallocate()
    }

    /// Runs the bodies, each on its own thread, until they and all threads that they started have ended.
    @discardableResult
    package static func run(seed: UInt64, _ bodies: [@Sendable () -> Void]) -> Int {
        let interleaving = Interleaving(seed: seed)
        let numbers = bodies.map { _ in interleaving.add() }
        let threads = zip(numbers, bodies).map { number, body in
            NamedThread.start("interleaved") { interleaving.take(part: number, body) }
        }
        interleaving.locked { interleaving.chooseNext() }
        for thread in threads { thread?.join() }
        interleaving.locked {
            while interleaving.running >= 0 { pthread_cond_wait(interleaving.switched, interleaving.mutex) }
        }
        return interleaving.switches
    }

    /// Another thread may run here.
    package static func point() { current?.pass() }

    // MARK: Participation

    /// The thread-local state of a participating thread.
    private final class Part {
        let interleaving: Interleaving
        let number: Int

        init(_ interleaving: Interleaving, _ number: Int) {
            self.interleaving = interleaving
            self.number = number
        }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    private static var part: Part? {
        pthread_getspecific(key).map { Unmanaged<Part>.fromOpaque($0).takeUnretainedValue() }
    }

    /// The interleaving of this thread; nil for threads that do not participate.
    static var current: Interleaving? { part?.interleaving }

    /// Registers a thread that is about to start. When the thread cannot start, `body` is not called.
    func add() -> Int {
        locked {
            threads.append(.ready)
            return threads.count - 1
        }
    }

    func take(part number: Int, _ body: () -> Void) {
        let part = Part(self, number)
        pthread_setspecific(Self.key, Unmanaged.passRetained(part).toOpaque())
        locked { waitForSlice(number) }
        body()
        pthread_setspecific(Self.key, nil)
        Unmanaged.passUnretained(part).release()
        end(number)
    }

    func end(_ number: Int) {
        locked {
            threads[number] = .over
            for (other, condition) in threads.enumerated() {
                if case .joining(number) = condition { threads[other] = .ready }
            }
            if running == number { chooseNext() }
        }
    }

    // MARK: Steps

    private var number: Int { Self.part!.number }

    private func pass() {
        let number = number
        locked {
            chooseNext()
            waitForSlice(number)
        }
    }

    func lock(_ monitor: Monitor) {
        let number = number
        locked {
            chooseNext()
            waitForSlice(number)
            acquire(monitor, number)
        }
    }

    func tryLock(_ monitor: Monitor) -> Bool {
        let number = number
        return locked {
            chooseNext()
            waitForSlice(number)
            if owners[ObjectIdentifier(monitor)] != nil || pthread_mutex_trylock(monitor.mutex) != 0 { return false }
            owners[ObjectIdentifier(monitor)] = number
            return true
        }
    }

    func unlock(_ monitor: Monitor) {
        let number = number
        locked {
            release(monitor)
            chooseNext()
            waitForSlice(number)
        }
    }

    func signal(_ monitor: Monitor) {
        locked {
            for (number, condition) in threads.enumerated() {
                if case .waiting(ObjectIdentifier(monitor), _) = condition { threads[number] = .ready }
            }
        }
    }

    func wait(_ monitor: Monitor, until deadline: Int64?) {
        let number = number
        locked {
            release(monitor)
            threads[number] = .waiting(ObjectIdentifier(monitor), until: deadline)
            chooseNext()
            waitForSlice(number)
            acquire(monitor, number)
        }
    }

    func join(_ other: Int) {
        let number = number
        locked {
            if case .over = threads[other] { return }
            threads[number] = .joining(other)
            chooseNext()
            waitForSlice(number)
        }
    }

    var now: Int64 { locked { nanoseconds } }

    // MARK: With the lock held

    private func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    private func acquire(_ monitor: Monitor, _ number: Int) {
        while owners[ObjectIdentifier(monitor)] != nil {
            threads[number] = .locking(ObjectIdentifier(monitor))
            chooseNext()
            waitForSlice(number)
        }
        owners[ObjectIdentifier(monitor)] = number
        // Threads that do not participate may use the monitor as well.
        pthread_mutex_lock(monitor.mutex)
    }

    private func release(_ monitor: Monitor) {
        pthread_mutex_unlock(monitor.mutex)
        owners[ObjectIdentifier(monitor)] = nil
        for (number, condition) in threads.enumerated() {
            if case .locking(ObjectIdentifier(monitor)) = condition { threads[number] = .ready }
        }
    }

    private func waitForSlice(_ number: Int) {
        while running != number { pthread_cond_wait(switched, mutex) }
    }

    private func chooseNext() {
        var ready = threads.indices.filter { if case .ready = threads[$0] { true } else { false } }
        // Sometimes time passes although other threads could run.
        if ready.isEmpty || random() % 64 == 0, let late = wakeEarliest() { ready.append(late) }
        if ready.isEmpty, threads.contains(where: { if case .over = $0 { false } else { true } }) {
            fatalError("no thread can run: seed \(seed), \(threads)")
        }
        let next = ready.isEmpty ? -1 : ready[Int(random() % UInt64(ready.count))]
        if next != running { switches += 1 }
        running = next
        pthread_cond_broadcast(switched)
    }

    /// Moves the clock to the earliest deadline, and returns the thread that waits for it.
    private func wakeEarliest() -> Int? {
        var earliest: (number: Int, time: Int64)?
        for (number, condition) in threads.enumerated() {
            if case .waiting(_, let until?) = condition, until < earliest?.time ?? .max { earliest = (number, until) }
        }
        guard let earliest else { return nil }
        nanoseconds = max(nanoseconds, earliest.time)
        threads[earliest.number] = .ready
        return earliest.number
    }

    /// SplitMix64.
    private func random() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
#endif
