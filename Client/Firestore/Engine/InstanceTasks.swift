/// Work of an instance that needs tasks of its own. It is cancelled when the instance ends.
final class InstanceTasks: Sendable {
    private struct State {
        var isEnded = false
        var nextNumber = 0
        var tasks: [Int: Task<Void, Never>] = [:]
    }

    private let state = Locked(State())

    /// - Parameter work: is cancelled from the start when the instance has ended.
    /// - Returns: cancels it.
    @discardableResult
    func run(_ work: @escaping @Sendable () async -> Void) -> @Sendable () -> Void {
        state.with { state in
            let number = state.nextNumber
            state.nextNumber += 1
            let task = Task.detached { [self] in
                await work()
                self.state.with { $0.tasks[number] = nil }
            }
            // It can't be removed before: that waits for the lock.
            state.tasks[number] = task
            if state.isEnded { task.cancel() }
            return { task.cancel() }
        }
    }

    func end() {
        let tasks = state.with { state in
            state.isEnded = true
            return state.tasks.values
        }
        for task in tasks { task.cancel() }
    }
}
