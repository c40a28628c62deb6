import CNetlink
import Glibc
import HearthHTTPClient
import HearthModel

/// Used on the loop's thread.
final class NetworkWatcher: LoopActivity {
    private let loop: TransportLoop
    private let descriptor: Int32
    private let state: () -> [String]
    private let onChange: () -> Void
    private var known: [String] = []
    private var watch: DescriptorWatch?
    private var timer: TransportTimer?
    private var firstNews: UInt64?
    private var isStopped = false

    /// After this time without changes…
    static let quietMilliseconds = 250
    /// …or this time with changes the state is read.
    static let patienceMilliseconds = 2_000

    /// - Parameters:
    ///   - descriptor: becomes readable with every change; owned by the monitor.
    ///   - state: the compared state.
    init(loop: TransportLoop, descriptor: Int32, state: @escaping () -> [String], onChange: @escaping () -> Void) {
        self.loop = loop
        self.descriptor = descriptor
        self.state = state
        self.onChange = onChange
    }

    func start() {
        known = state()
        let watch = DescriptorWatch(descriptor: descriptor, events: Int16(POLLIN)) { [unowned self] _ in news() }
        self.watch = watch
        loop.watch(watch)
        loop.add(self)
    }

    func abort(_ status: Status) { stop() }

    func stop() {
        guard !isStopped else { return }
        isStopped = true
        if let watch { loop.unwatch(watch) }
        watch = nil
        if let timer { loop.cancelTimer(timer) }
        timer = nil
        loop.remove(self)
        close(descriptor)
    }

    private func news() {
        // The messages are ignored, even a report of lost messages: the state is read again.
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT)) > 0 {}
        let now = Monotonic.nanoseconds()
        let first = firstNews ?? now
        firstNews = first
        guard timer == nil || now - first < UInt64(NetworkWatcher.patienceMilliseconds) * 1_000_000 else { return }
        if let timer { loop.cancelTimer(timer) }
        timer = loop.schedule(afterMilliseconds: NetworkWatcher.quietMilliseconds) { [unowned self] in look() }
    }

    private func look() {
        timer = nil
        firstNews = nil
        let present = state()
        guard present != known else { return }
        known = present
        onChange()
    }
}
