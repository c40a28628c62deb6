import HearthConcurrency
import HearthHost
import HearthModel
import HearthToolSupport

extension ServerConnection {
    /// Passes the answer to a GET request to `body` as it arrives, on the loop's thread, which reads no more meanwhile.
    /// - Throws: 1 when the server refuses, 69 when the connection breaks or the answer is cut, what `body` throws.
    func download(
        _ target: String, _ body: @escaping ([UInt8]) throws(ToolFailure) -> Void
    ) throws(ToolFailure) {
        let outcome = Awaited<Download>()
        let job = Job(body)
        loop.execute { [client, headers] in
            let stream = client.open(method: "GET", path: target, headers: headers, hasBody: false)
            let download = Download()
            stream.onHead = { status, _ in download.status = status }
            stream.onBody = { [unowned stream] bytes in
                guard (200...299).contains(download.status) else {
                    if download.refused.count < 64 << 10 { download.refused.append(contentsOf: bytes) }
                    return
                }
                if download.failure != nil { return }
                do throws(ToolFailure) {
                    try job.body(Array(bytes))
                } catch {
                    download.failure = error
                    stream.cancel()
                    outcome.set(.success(download))
                }
            }
            stream.onEnd = { _ in outcome.set(.success(download)) }
            stream.onFailure = { outcome.set(.failure($0)) }
        }
        let download = try wait(outcome)
        if let failure = download.failure { throw failure }
        if (200...299).contains(download.status) { return }
        var message = String(decoding: download.refused.prefix(4096), as: UTF8.self)
        do throws(Status) {
            let error = try ConfigurationValue(parsing: download.refused, file: "answer").member("error")
            if let string = try error?.member("message")?.string() { message = string }
        } catch {
            // Another server than Hearth has answered, in a form of its own.
        }
        throw ToolFailure(
            .failed,
            "The server refuses (\(download.status)): \(Printable.string(message))\(hint(download.status))")
    }

    /// `@unchecked Sendable`: belongs to the loop's thread until the outcome is set, then to the waiting thread.
    private final class Download: @unchecked Sendable {
        var status = 0
        var refused: [UInt8] = []
        var failure: ToolFailure?
    }

    /// `@unchecked Sendable`: the loop's thread calls it while its creator waits.
    private final class Job: @unchecked Sendable {
        let body: ([UInt8]) throws(ToolFailure) -> Void

        init(_ body: @escaping ([UInt8]) throws(ToolFailure) -> Void) { self.body = body }
    }
}
