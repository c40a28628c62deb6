import Synchronization

/// Collects the results of several threads.
package final class Gathered<Element: Sendable>: Sendable {
    private let state = Mutex<[Element]>([])

    package init() {}

    package var values: [Element] { state.withLock { $0 } }
    package func append(_ element: Element) { state.withLock { $0.append(element) } }
    package func append(contentsOf elements: [Element]) { state.withLock { $0 += elements } }
}
