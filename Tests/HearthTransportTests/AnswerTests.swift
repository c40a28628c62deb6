import HearthModel
import HearthTestSupport
import Testing

@testable import HearthHTTPClient
@testable import HearthTransport

/// The parts without I/O.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct AnswerTests {
    private func answer(_ lines: [String], body: [UInt8] = [], trailers: [String] = []) -> GRPCAnswerReader {
        var reader = GRPCAnswerReader(messageBytesMax: 100)
        for line in lines + [""] { Array((line + "\r\n").utf8).withUnsafeBytes { reader.readLine($0) } }
        body.withUnsafeBytes { reader.append($0) }
        for line in trailers { Array((line + "\r\n").utf8).withUnsafeBytes { reader.readLine($0) } }
        return reader
    }

    private let head = ["HTTP/2 200", "Content-Type: application/grpc"]

    @Test(arguments: [
        (400, Status.Code.internal), (401, .unauthenticated), (403, .permissionDenied), (404, .unimplemented),
        (429, .unavailable), (502, .unavailable), (503, .unavailable), (504, .unavailable), (500, .unknown),
        (200, .unknown),
    ])
    func answersThatAreNotGRPC(_ httpStatus: Int, _ code: Status.Code) {
        let reader = answer(["HTTP/2 \(httpStatus)", "content-type: text/html"], body: bytes(50))
        #expect(reader.earlyFailure?.code == code)
        #expect(reader.finalStatus(failure: nil).code == code)
        #expect(reader.heldBytes == 0)
    }

    @Test func aStatusCountsWhateverHTTPSays() {
        let reader = answer([
            "HTTP/2 503", "content-type: application/grpc", "grpc-status: 5", "grpc-message: a%20b%zz",
        ])
        #expect(reader.isComplete)
        #expect(reader.finalStatus(failure: nil) == .notFound("a b%zz"))
    }

    @Test func http1IsRefused() {
        #expect(answer(["HTTP/1.1 200 OK", "content-type: application/grpc"]).earlyFailure?.code == .unavailable)
    }

    @Test func interimAnswersDoNotCount() {
        let reader = answer(["HTTP/2 103", "grpc-status: 3", ""] + head, trailers: ["grpc-status: 0"])
        #expect(reader.finalStatus(failure: nil) == .ok)
    }

    @Test func withoutAStatusItIsInternal() {
        #expect(answer(head).finalStatus(failure: nil).code == .internal)
        #expect(answer(head, trailers: ["x: 1"]).finalStatus(failure: nil).code == .internal)
        #expect(answer(head).finalStatus(failure: .unavailable("broken")).code == .unavailable)
        #expect(answer(head, trailers: ["grpc-status: 99"]).finalStatus(failure: nil).code == .unknown)
        #expect(answer(head, trailers: ["grpc-status: x"]).finalStatus(failure: nil).code == .unknown)
    }

    @Test func badFramesAreRefused() throws {
        var flag = answer(head, body: [2, 0, 0, 0, 0])
        #expect(throws: Status.self) { try flag.next() }
        #expect(flag.earlyFailure?.code == .internal)
        var long = answer(head, body: [0, 0, 0, 0, 101])
        #expect(throws: Status.self) { try long.next() }
        #expect(long.finalStatus(failure: nil).code == .resourceExhausted)
        var compressed = answer(head, body: [1, 0, 0, 0, 1, 9])
        #expect(throws: Status.self) { try compressed.next() }
        #expect(compressed.finalStatus(failure: nil).code == .internal)
        var notGzip = answer(head + ["grpc-encoding: gzip"], body: [1, 0, 0, 0, 1, 9])
        #expect(throws: Status.self) { try notGzip.next() }
        #expect(notGzip.finalStatus(failure: nil).code == .internal)
        var cut = answer(head, body: [0, 0, 0, 0, 2, 9], trailers: ["grpc-status: 0"])
        let none = try cut.next()
        #expect(none == nil)
        #expect(cut.finalStatus(failure: nil).code == .internal)
    }

    @Test func messagesAreReadFromAnyPieces() throws {
        let frames: [UInt8] = [0, 0, 0, 0, 0] + [0, 0, 0, 0, 3, 1, 2, 3] + [0, 0, 0, 0, 1, 4]
        for size in 1...frames.count {
            var reader = answer(head)
            var messages: [[UInt8]] = []
            for start in stride(from: 0, to: frames.count, by: size) {
                frames[start..<min(start + size, frames.count)].withUnsafeBytes { reader.append($0) }
                while let message = try reader.next() { messages.append(message) }
            }
            #expect(messages == [[], [1, 2, 3], [4]])
        }
    }

    @Test func headsAreBounded() {
        let line = "x: " + String(repeating: "a", count: 1_000)
        let reader = answer(head + Array(repeating: line, count: 300))
        #expect(reader.earlyFailure?.code == .resourceExhausted)
    }

    @Test func timeoutsFitEightDigits() {
        #expect(GRPCStatusMessage.timeout(milliseconds: 0) == "1m")
        #expect(GRPCStatusMessage.timeout(milliseconds: 99_999_999) == "99999999m")
        #expect(GRPCStatusMessage.timeout(milliseconds: 100_000_000) == "100000S")
        #expect(GRPCStatusMessage.timeout(milliseconds: .max) == "99999999H")
    }

    @Test func resetCodesBecomeStatuses() {
        #expect(CurlFailure.resetCode(in: "HTTP/2 stream 1 was not closed cleanly: CANCEL (err 8)") == 8)
        #expect(CurlFailure.resetCode(in: "anything else") == nil)
        #expect(CurlFailure.streamReset(7, "").code == .unavailable)
        #expect(CurlFailure.streamReset(8, "").code == .cancelled)
        #expect(CurlFailure.streamReset(11, "").code == .resourceExhausted)
        #expect(CurlFailure.streamReset(2, "").code == .internal)
    }
}
