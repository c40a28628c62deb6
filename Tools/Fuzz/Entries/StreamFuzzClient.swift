import HearthDocuments
import HearthFirestoreServer
import HearthHost
import HearthConcurrency
import Glibc
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// A call without a connection. `@unchecked Sendable`: belongs to the loop.
class StreamFuzzClient: StreamCall, @unchecked Sendable {
    let loop: EventLoop
    let cancellation = Cancellation()
    let format = MessageFormat.json(JSONOptions())
    let identity = Identity.owner
    let requester = Requester.server
    let onceValues: [String] = []
    let triggersValues: [String] = []
    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?
    private(set) var end: Status?
    private let database: Database
    private var hasCapacity = true
    private var isPaused = false
    private(set) var isFaulted = false
    private var held: [[UInt8]] = []
    var token = ""
    var requests = 0

    init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        self.loop = loop
        self.database = database
    }

    var isFinished: Bool { end != nil }

    func received(_ message: [UInt8]) {}

    func willSend(_ message: [UInt8]) {}

    func send(_ message: [UInt8]) -> Bool {
        precondition(loop.isCurrent, "a stream talks on its loop")
        if !isFinished { received(message) }
        return hasCapacity
    }

    func finish(_ status: Status) {
        if isFinished { return }
        end = status
        forget()
    }

    private func forget() {
        onMessage = nil
        onHalfClose = nil
        onFault = nil
        onCancel = nil
        onWritable = nil
    }

    static func base64(_ bytes: [UInt8]) -> String {
        var writer = JSONWriter()
        bytes.withUnsafeBytes { writer.base64($0) }
        return String(decoding: writer.bytes.filter { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        while !isPaused, !held.isEmpty { onMessage?(held.removeFirst()) }
    }

    // MARK: The input

    func take(_ line: [UInt8]) {
        switch line[0] {
        case UInt8(ascii: "{"):
            onLoop { [self] in
                if isFaulted { return }
                let string = String(decoding: line, as: UTF8.self).split(
                    separator: "$T", omittingEmptySubsequences: false)
                let message = Array(string.joined(separator: token).utf8)
                requests += 1
                willSend(message)
                if isPaused { held.append(message) } else { onMessage?(message) }
            }
        case UInt8(ascii: "+"), UInt8(ascii: "-"): commit(line)
        case UInt8(ascii: "!"): onLoop { [self] in hasCapacity = false }
        case UInt8(ascii: "~"): makeSpace()
        case UInt8(ascii: "h"): onLoop { [self] in if !isFaulted { onHalfClose?() } }
        case UInt8(ascii: "f"): onLoop { [self] in fault() }
        case UInt8(ascii: "z"):
            let done = FuzzLatch()
            database.clear { _ in done.open() }
            done.wait()
        default: break
        }
    }

    private func fault() {
        guard !isFaulted, !isFinished, held.isEmpty else { return }
        isFaulted = true
        let status = Status.internalError("a message is not valid gzip")
        if let onFault {
            self.onFault = nil
            return onFault(status)
        }
        let onCancel = onCancel
        finish(status)
        onCancel?()
    }

    func makeSpace() {
        onLoop { [self] in
            hasCapacity = true
            onWritable?()
        }
    }

    private func commit(_ line: [UInt8]) {
        let words = String(decoding: line.dropFirst(), as: UTF8.self).split(separator: " ")
        guard let path = words.first else { return }
        do throws(Status) {
            let name = try ResourceName(document: database.name.string + "/documents/" + path)
            let number = words.count > 1 ? Int64(words[1]) ?? 0 : 0
            let fields = MapValue([.init(name: "n", value: .integer(number))])
            let write = Write(
                document: name, operation: line[0] == UInt8(ascii: "+") ? .update(fields: fields, mask: nil) : .delete)
            let done = FuzzLatch()
            database.commit([write], sizeBytes: line.count) { _ in done.open() }
            done.wait()
        } catch { return }
    }

    func onLoop(_ body: @escaping @Sendable () -> Void) {
        let done = FuzzLatch()
        loop.execute {
            body()
            done.open()
        }
        done.wait()
    }

    var isIdle: Bool { true }

    /// Waits until no further event can follow.
    func settle() {
        makeSpace()
        let quiet = Mutex(0)
        for _ in 0..<200_000 {
            onLoop { [self] in
                let isQuiet = isFinished || isIdle
                quiet.withLock { $0 = isQuiet ? $0 + 1 : 0 }
            }
            if quiet.withLock({ $0 }) >= 3 { return }
            usleep(20)
        }
        preconditionFailure("the stream does not become idle")
    }

    func leave() {
        onLoop { [self] in
            cancellation.cancel()
            let onCancel = onCancel
            forget()
            onCancel?()
        }
    }
}
