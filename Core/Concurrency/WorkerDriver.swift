/// Runs a worker's body when it is woken: a thread does, or a test that decides which worker continues.
package protocol WorkerDriver: Sendable {
    /// Lets the body run once more; false when it cannot run any more.
    func wake() -> Bool
    /// Returns when the body no longer runs; it runs once more before that when it was woken. Called by the body, it returns at
    /// once.
    func stop()
}

/// Makes the driver of a worker: by its name, its idle handler (called once when it was not woken for a while), and its body.
package typealias WorkerDrivers =
    @Sendable (String, @escaping @Sendable () -> Void, @escaping @Sendable () -> Void) -> any WorkerDriver
