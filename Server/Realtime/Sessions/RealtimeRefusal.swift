import HearthModel
import HearthTree

/// The reason why a request fails; the connection continues.
package struct RealtimeRefusal: Error, Sendable, Equatable {
    var status: RealtimeStatus
    var string: String

    static let permissionDenied = RealtimeRefusal(status: .permissionDenied, string: "Permission denied")

    init(status: RealtimeStatus, string: String) {
        self.status = status
        self.string = string
    }

    init(_ error: TreeDataError) { self.init(status: .failure, string: error.message) }

    init(_ status: Status) {
        switch status.code {
        case .permissionDenied: self = .permissionDenied
        case .resourceExhausted: self.init(status: .tooBig, string: status.message)
        case .unavailable, .cancelled, .aborted: self.init(status: .unavailable, string: status.message)
        case .unauthenticated: self.init(status: .invalidToken, string: status.message)
        default: self.init(status: .failure, string: status.message)
        }
    }
}
