import Foundation
import HearthHTTPClient
import Synchronization

/// Follows the feed: reads its lines and applies them to the copy.
///
/// Everything happens on the transport's thread. It has no other request, so that SQLite may block it; then the server waits, too.
final class Follower: Sendable {
    /// Why a request has ended.
    enum End: Sendable {
        /// The server has ended it in order: the present is reached.
        case done
        /// The position is too old, or of another history: everything has to come anew.
        case tooOld
        /// Worth another attempt.
        case cut(String)
        /// Not worth one.
        case failed(String)
    }

    private struct State {
        var status = 0
        /// The bytes of a line whose end hasn't come; the body of an error.
        var rest: [UInt8] = []
        var end: End?

        /// The lines that end in the bytes.
        mutating func lines(endingIn bytes: [UInt8]) -> [[UInt8]] {
            var lines: [[UInt8]] = []
            var start = 0
            while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
                lines.append(rest + bytes[start..<end])
                rest = []
                start = end + 1
            }
            rest += bytes[start...]
            return lines
        }
    }

    private struct Line: Sendable {
        var token: String?
        var name: String?
        var fields: String?
        var updateTime = ""
        var isLast = false
        var error: (code: Int, message: String)?

        init(_ bytes: ArraySlice<UInt8>) throws {
            guard let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
                throw Copy.Failure(message: "A line of the feed is no object.")
            }
            token = object["token"] as? String
            name = object["document"] as? String
            // A heartbeat is a position without a change.
            isLast = object["last"] as? Bool ?? (object["heartbeat"] != nil)
            if let after = object["after"] as? [String: Any] {
                let json = try JSONSerialization.data(
                    withJSONObject: after["fields"] ?? [String: Any](), options: [.sortedKeys])
                fields = String(decoding: json, as: UTF8.self)
                updateTime = after["updateTime"] as? String ?? ""
            }
            if let error = object["error"] as? [String: Any] {
                self.error = (error["code"] as? Int ?? 0, error["message"] as? String ?? "")
            }
        }
    }

    private static let errorBytesMax = 64 << 10

    private let client: HTTPClient
    private let options: Options
    private let copy: Mutex<Copy>
    private let state = Mutex(State())

    init(_ copy: sending Copy, _ options: Options, _ client: HTTPClient) {
        self.copy = Mutex(copy)
        self.options = options
        self.client = client
    }

    /// One request, from the copy's position to its end.
    func follow(anew: Bool) async throws -> End {
        state.withLock { $0 = State() }
        let position = try copy.withLock { copy in
            try copy.undo()
            let position = anew ? nil : try copy.position()
            if position == nil { try copy.beginAnew() }
            return position
        }
        var request = HTTPRequest(url: options.url(after: position))
        if let token = options.token { request.headers.append(HTTPField("authorization", "Bearer \(token)")) }
        return await withCheckedContinuation { continuation in
            _ = client.start(request) { [self] event in
                switch event {
                case .head(let status, _): state.withLock { $0.status = status }
                case .body(let bytes): take(bytes)
                case .unconnected: break
                case .closed(let status, _):
                    var end = ended(status.code == .ok ? nil : status.message)
                    if case .done = end {
                        do {
                            try copy.withLock { copy in try copy.finish() }
                        } catch {
                            end = .failed((error as? Copy.Failure)?.message ?? "\(error)")
                        }
                    }
                    continuation.resume(returning: end)
                }
            }
        }
    }

    private func ended(_ failure: String?) -> End {
        state.withLock { state in
            if let end = state.end { return end }
            if let failure { return .cut(failure) }
            if state.status == 200 { return .done }
            if let error = (try? Line(state.rest[...]))?.error { return Self.end(error.code, error.message) }
            return Self.end(state.status, "The server has answered \(state.status).")
        }
    }

    private static func end(_ code: Int, _ message: String) -> End {
        switch code {
        case 410: .tooOld
        case 429, 500...: .cut(message)
        default: .failed(message)
        }
    }

    private func take(_ bytes: [UInt8]) {
        let lines: [[UInt8]] = state.withLock { state in
            if state.status == 200 { return state.lines(endingIn: bytes) }
            if state.rest.count < Self.errorBytesMax { state.rest += bytes }
            return []
        }
        do {
            for line in lines where !line.isEmpty { try apply(try Line(line[...])) }
        } catch {
            let message = (error as? Copy.Failure)?.message ?? "\(error)"
            state.withLock { $0.end = $0.end ?? .failed(message) }
        }
    }

    private func apply(_ line: Line) throws {
        if state.withLock({ $0.end != nil }) { return }
        if let error = line.error { return state.withLock { $0.end = Self.end(error.code, error.message) } }
        try copy.withLock { copy in
            if let name = line.name { try copy.set(name, line.fields, line.updateTime) }
            if line.isLast, let token = line.token { try copy.end(at: token) }
        }
    }
}
