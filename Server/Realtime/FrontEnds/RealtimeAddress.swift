import HearthHost
import HearthNetwork

/// The namespace of a request.
enum RealtimeAddress {
    /// - Parameters:
    ///   - named: the value of `ns`.
    ///   - standard: the namespace when nothing else names one.
    static func namespace(_ head: HTTPRequestHead, named: String?, standard: String) -> String {
        named ?? RealtimeName.inHost(head.authority) ?? standard
    }
}
