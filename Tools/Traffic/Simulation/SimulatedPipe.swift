import Glibc
import HearthNetwork

/// One direction of a simulated connection: a ring of bytes that have been sent and not been received.
final class SimulatedPipe {
    private var memory: UnsafeMutableRawBufferPointer
    private var start = 0
    private(set) var count = 0
    /// No byte follows.
    var isFinished = false
    /// Nobody receives.
    var isAbandoned = false

    init(capacity: Int) { memory = .allocate(byteCount: max(1, capacity), alignment: 8) }

    deinit { memory.deallocate() }

    var space: Int { memory.count - count }

    /// Gives it more space.
    func widen(to capacity: Int) {
        guard capacity > memory.count else { return }
        let wider = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
        let length = count
        if let base = wider.baseAddress { take(length, to: base) }
        memory.deallocate()
        memory = wider
        start = 0
        count = length
    }

    func put(_ bytes: UnsafeRawBufferPointer) {
        guard let base = memory.baseAddress, let source = bytes.baseAddress else { return }
        let end = (start + count) % memory.count
        let first = min(bytes.count, memory.count - end)
        memcpy(base + end, source, first)
        memcpy(base, source + first, bytes.count - first)
        count += bytes.count
    }

    func take(_ length: Int, to target: UnsafeMutableRawPointer) {
        guard let base = memory.baseAddress else { return }
        let first = min(length, memory.count - start)
        memcpy(target, base + start, first)
        memcpy(target + first, base, length - first)
        start = (start + length) % memory.count
        count -= length
    }
}

/// One end of a simulated connection. Chance decides how much each call takes, within what a socket may do.
final class SimulatedEnd: SimulatedSocket {
    /// How many bytes a call takes.
    enum Pace: Int {
        case all, any, few
    }

    private let input: SimulatedPipe
    private let output: SimulatedPipe
    private let choices: Choices
    private let pace: Pace
    /// At the end of an episode everything has to arrive.
    var isHurrying = false { didSet { output.widen(to: 256 << 10) } }
    private(set) weak var channel: SocketChannel?
    private(set) var isClosed = false
    private(set) var receivedBytes = 0

    init(input: SimulatedPipe, output: SimulatedPipe, pace: Pace, _ choices: Choices) {
        self.input = input
        self.output = output
        self.pace = pace
        self.choices = choices
    }

    private func part(of bytes: Int) -> Int {
        guard !isHurrying else { return bytes }
        switch pace {
        case .all: return bytes
        case .any: return choices.chance(50) ? bytes : choices.between(1...bytes)
        case .few: return min(bytes, choices.chance(80) ? choices.between(1...7) : choices.between(1...20_000))
        }
    }

    func started(_ channel: SocketChannel) { self.channel = channel }

    func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard input.count > 0, let base = buffer.baseAddress else {
            if input.isFinished { return 0 }
            errno = EAGAIN
            return -1
        }
        let count = part(of: min(buffer.count, input.count))
        input.take(count, to: base)
        receivedBytes += count
        return count
    }

    func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !output.isAbandoned else {
            errno = EPIPE
            return -1
        }
        guard output.space > 0 else {
            errno = EAGAIN
            return -1
        }
        let count = part(of: min(bytes.count, output.space))
        output.put(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return count
    }

    func finishSending() { output.isFinished = true }

    func close() {
        isClosed = true
        output.isFinished = true
        input.isAbandoned = true
    }

    /// What epoll would report, if anything.
    func report() {
        guard let channel, !isClosed else { return }
        let hasInput = channel.awaitsInput && (input.count > 0 || input.isFinished)
        let hasSpace = channel.awaitsSpace && (output.space > 0 || output.isAbandoned)
        if hasInput || hasSpace || input.isFinished {
            channel.simulateEvents(hasInput: hasInput, hasSpace: hasSpace, hasPeerEnded: input.isFinished)
        }
    }
}
