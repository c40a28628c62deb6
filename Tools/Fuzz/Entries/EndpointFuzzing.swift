import Glibc
import HearthConcurrency
import HearthEvents
import HearthModel
import HearthTriggers
import Synchronization

/// The entry point for fuzzing answers of endpoints: whatever bytes one sends before it closes, an event's request ends at
/// once, and is acknowledged only by a whole answer of status 2xx. A violated invariant traps.
package enum EndpointFuzzing {
    private static let timeoutMilliseconds = 8000
    private static let endpoint = Endpoint()
    private static let sender = EventSender()
    private static let event = EventRequest(
        headers: [EventRequest.Header(name: "content-type", value: "application/protobuf")], body: Endpoint.body)

    /// The endpoint has one answer at a time.
    private static let exchange = Mutex(())

    package static func fuzz(_ bytes: [UInt8]) { exchange.withLock { _ in send(bytes) } }

    private static func send(_ bytes: [UInt8]) {
        let url = endpoint.serve(bytes)
        let target = EventSender.Target(url: url, timeoutMilliseconds: timeoutMilliseconds)
        let outcome = Awaited<Delivery.Answer>()
        sender.send(event, to: target, attempt: 1) { outcome.set(.success($0)) }
        do throws(Status) {
            check(try outcome.wait(), bytes)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private static func check(_ answer: Delivery.Answer, _ bytes: [UInt8]) {
        switch answer {
        case .acknowledged: precondition(hasStatus(bytes, 200..<300), "acknowledged without a status of success")
        case .failed(let failure, let retryAfterNanoseconds):
            precondition(!failure.message.isEmpty, "a failure without a message")
            switch failure.kind {
            case .status(let status):
                precondition(hasStatus(bytes, status..<(status + 1)), "the status \(status) from nowhere")
                precondition(!(200..<300).contains(status), "a status of success that failed")
                precondition(
                    retryAfterNanoseconds == nil || status == 429 || status == 503, "a pause that nobody asked for")
            case .cut: precondition(retryAfterNanoseconds == nil, "a pause of an answer that was cut")
            case .timeout: preconditionFailure("an endpoint that has closed was waited for")
            case .unreachable: preconditionFailure("an endpoint that has answered is unreachable")
            }
        case .unreachable, .unsent, .impossible, .gone: preconditionFailure("\(answer)")
        }
        if let isWhole = isWhole(bytes) {
            precondition((answer == .acknowledged) == isWhole, "\(isWhole ? "a whole" : "a cut") answer: \(answer)")
        }
    }

    /// Whether a status line with such a status is among the lines.
    private static func hasStatus(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        bytes.split(separator: UInt8(ascii: "\n")).contains { line in
            guard line.starts(with: "HTTP/".utf8) else { return false }
            let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") }
            guard words.count > 1 else { return false }
            let digits = words[1].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            return Int(String(decoding: digits, as: UTF8.self)).map { range.contains($0) } ?? false
        }
    }

    /// Whether the body of an answer with a plain head is as long as it says; nil with any other head.
    private static func isWhole(_ bytes: [UInt8]) -> Bool? {
        let head = Array("HTTP/1.1 200 OK\r\ncontent-length: ".utf8)
        guard bytes.starts(with: head) else { return nil }
        let digits = bytes.dropFirst(head.count).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let rest = bytes.dropFirst(head.count + digits.count)
        guard (1...9).contains(digits.count), rest.starts(with: "\r\n\r\n".utf8),
            let length = Int(String(decoding: digits, as: UTF8.self))
        else { return nil }
        return rest.count - 4 >= length
    }
}

/// Reads a request, answers with the bytes of the present input, and closes.
///
/// `@unchecked Sendable`: the bytes are behind a mutex, and the rest does not change.
private final class Endpoint: @unchecked Sendable {
    static let body = Array("the body".utf8)
    private let answer = Mutex<[UInt8]>([])
    private let listener: Int32
    private var port = 0
    private var thread: NamedThread?

    init() {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isBound, "no port can be had")
        port = Int(UInt16(bigEndian: address.sin_port))
        thread = NamedThread.start("fuzz-endpoint") { [unowned self] in run() }
        precondition(thread != nil, "there is no thread")
    }

    /// - Returns: the address.
    func serve(_ bytes: [UInt8]) -> String {
        answer.withLock { $0 = bytes }
        return "http://127.0.0.1:\(port)/"
    }

    private func run() {
        while true {
            let descriptor = accept(listener, nil, nil)
            if descriptor < 0 { continue }
            serve(descriptor)
            close(descriptor)
        }
    }

    private func serve(_ descriptor: Int32) {
        var request: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        // A request that is not read to its end would make the close a reset, which may overtake the answer.
        while !request.suffix(Self.body.count).elementsEqual(Self.body) {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { return }
            request += buffer[..<count]
        }
        var rest = answer.withLock { $0 }[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count <= 0 { return }
            rest = rest.dropFirst(count)
        }
    }
}
