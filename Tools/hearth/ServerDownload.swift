import HearthConcurrency
import HearthToolSupport

extension ServerConnection {
    /// Passes the answer to a GET request to `body` as it arrives, on the loop's thread, which reads no more meanwhile.
    /// - Returns: the status and the first 64 KB of an answer that is an error; nil without one.
    /// - Throws: 69 when the connection breaks or the answer is cut, what `body` throws.
    func download(
        _ target: String, _ body: @escaping ([UInt8]) throws(ToolFailure) -> Void
    ) throws(ToolFailure) -> (status: Int, body: [UInt8])? {
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
        return (200...299).contains(download.status) ? nil : (download.status, download.refused)
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
