internal import Foundation

/// One node of the encoded data.
package final class EncodingNode {
    enum Content {
        /// Nothing was encoded: an object without members.
        case nothing
        case value(Any)
        case map([String: EncodingNode])
        case array([EncodingNode])
    }

    var content = Content.nothing

    package init() {}

    package var resolved: Any {
        switch content {
        case .nothing: [String: Any]()
        case .value(let value): value
        case .map(let members): members.mapValues(\.resolved)
        case .array(let elements): elements.map(\.resolved)
        }
    }
}
