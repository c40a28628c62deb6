/// The reason why a request is rejected before it is interpreted.
package struct HTTP1Failure: Error, Equatable {
    let status: Int
    let reason: String

    static func badRequest(_ reason: String) -> HTTP1Failure { HTTP1Failure(status: 400, reason: reason) }
}
