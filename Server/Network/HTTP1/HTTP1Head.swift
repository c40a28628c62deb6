/// A parsed request head.
package struct HTTP1Head: Equatable {
    package enum Body: Equatable {
        case none
        case length(Int)
        case chunked
    }

    var method: String
    /// Origin form; an absolute-form target is split into this and `authority`.
    var target: String
    var authority: String
    var headers: [HTTPHeader]
    var isVersion1_0: Bool
    var body: Body
    var keepsAlive: Bool
    var expectsContinue: Bool
}
