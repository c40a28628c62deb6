/// Waits, without its own timeout, until a condition holds.
package func until(_ condition: () throws -> Bool) async rethrows {
    while try !condition() { await Task.yield() }
}
