import Foundation

/// Goes through a list that is there already.
final class ListEnumerator: NSEnumerator {
    private var rest: ArraySlice<Any>

    init(_ list: [Any]) { rest = list[...] }

    override func nextObject() -> Any? { rest.popFirst() }
}
