/// Passes a value that belongs to a loop through another thread and back.
package struct LoopBound<Value>: @unchecked Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}
