import Foundation

/// Enumerates a list that exists already.
final class ListEnumerator: NSEnumerator {
    private var rest: ArraySlice<Any>

    init(_ list: [Any]) { rest = list[...] }

    override func nextObject() -> Any? { rest.popFirst() }
}
