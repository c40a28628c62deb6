import HearthModel
import HearthNetwork

/// Observes the requests of a server: counts them, and logs them if requested.
package final class RequestObserver: Sendable {
    let metrics: RequestMetrics
    private let log: Log?

    /// - Parameter log: nil when requests are not logged.
    package init(metrics: RequestMetrics, log: Log? = nil) {
        self.metrics = metrics
        self.log = log
    }

    package func begin(
        _ method: RequestMetrics.Method, _ transport: RequestMetrics.Transport, remote: @autoclosure () -> String
    ) -> Observation {
        Observation(
            observer: self, method: method, transport: transport, start: EventLoop.monotonicNanoseconds(),
            remote: log == nil ? "" : remote())
    }

    /// A request in progress. Held by the object that carries the call, which ends it once.
    package struct Observation: Sendable {
        fileprivate let observer: RequestObserver
        fileprivate let method: RequestMetrics.Method
        fileprivate let transport: RequestMetrics.Transport
        fileprivate let start: UInt64
        fileprivate let remote: String

        /// On the call's loop.
        package func end(_ status: Status, on loop: EventLoop) {
            let nanoseconds = EventLoop.monotonicNanoseconds() &- start
            observer.metrics.record(
                method, transport, code: status.code, nanoseconds: nanoseconds, loopIndex: loop.index)
            guard let log = observer.log else { return }
            var fields: [Log.Field] = [
                ("method", .string(method.name)), ("transport", .string(transport.name)),
                ("code", .string(status.code.name)),
                ("milliseconds", .number(Double(nanoseconds / 1000) / 1000)), ("remote", .string(remote)),
            ]
            if status.code != .ok { fields.append(("reason", .string(status.message))) }
            log.record(.info, "request", fields)
        }
    }
}
