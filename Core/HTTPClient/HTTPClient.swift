import HearthModel
import Synchronization

package enum HTTPEvent: Sendable {
    case head(status: Int, headers: [HTTPField])
    case body([UInt8])
    /// No connection could be made, so the server has received nothing; `closed` follows.
    case unconnected
    /// The end: OK with the response's trailers when it is complete, for any HTTP status.
    case closed(Status, trailers: [HTTPField])
}

package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [HTTPField]
    package var body: [UInt8]
}

/// Plain requests over HTTP/1.1 or HTTP/2. Connections are shared among all clients of a transport.
package final class HTTPClient: Sendable {
    private let transport: Transport

    package init(transport: Transport) { self.transport = transport }

    /// Begins a request. Events are delivered on the transport's thread and must not block it. After the shutdown of
    /// the transport only the end is delivered, within the call.
    package func start(_ request: HTTPRequest, onEvent: @escaping @Sendable (HTTPEvent) -> Void) -> HTTPTask {
        let task = HTTPTask(transport: transport, onEvent: onEvent)
        if !transport.loop.execute({ task.start(request) }) {
            onEvent(.closed(Status(.cancelled, "the transport was shut down"), trailers: []))
        }
        return task
    }

    /// Sends a request and collects its response.
    /// - Throws: RESOURCE_EXHAUSTED when the body is larger than `bodyBytesMax`, otherwise as for calls.
    package func response(to request: HTTPRequest, bodyBytesMax: Int) async throws(Status) -> HTTPResponse {
        let gathered = GatheredAnswer(bodyBytesMax: bodyBytesMax)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                gathered.begin(continuation)
                let started = start(request) { gathered.take($0) }
                gathered.set(started)
                if Task.isCancelled { gathered.cancel() }
            }
        } onCancel: {
            gathered.cancel()
        }
        return try result.get()
    }
}

/// Collects a response for `HTTPClient.response`.
private final class GatheredAnswer: Sendable {
    private struct State {
        var response = HTTPResponse(status: 0, headers: [], body: [])
        var continuation: CheckedContinuation<Result<HTTPResponse, Status>, Never>?
        var task: HTTPTask?
        var isOver = false
    }

    private let state = Mutex(State())
    private let bodyBytesMax: Int

    init(bodyBytesMax: Int) { self.bodyBytesMax = bodyBytesMax }

    func begin(_ continuation: CheckedContinuation<Result<HTTPResponse, Status>, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    func set(_ task: HTTPTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    func cancel() { end(.failure(Status(.cancelled, "the request was cancelled"))) }

    func take(_ event: HTTPEvent) {
        switch event {
        case .head(let status, let headers):
            state.withLock { state in
                state.response.status = status
                state.response.headers = headers
            }
        case .body(let bytes):
            let isTooLarge = state.withLock { state in
                state.response.body += bytes
                return state.response.body.count > bodyBytesMax
            }
            if isTooLarge { end(.failure(.resourceExhausted("the answer is larger than \(bodyBytesMax) bytes"))) }
        case .unconnected: break
        case .closed(let status, _):
            end(status.code == .ok ? .success(state.withLock { $0.response }) : .failure(status))
        }
    }

    private func end(_ result: Result<HTTPResponse, Status>) {
        let (continuation, task) = state.withLock { state in
            let ended = (state.continuation, state.task)
            state.continuation = nil
            state.task = nil
            state.isOver = true
            return ended
        }
        task?.cancel()
        continuation?.resume(returning: result)
    }
}
