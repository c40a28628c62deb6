/// Work of an instance that needs its own tasks. It is cancelled when the instance ends.
final class InstanceTasks: Sendable {
    private struct State {
        var isEnded = false
        var nextNumber = 0
        var tasks: [Int: Task<Void, Never>] = [:]
    }

    private let state = Locked(State())

    /// - Parameter work: starts cancelled when the instance has already ended.
    /// - Returns: a closure that cancels the work.
    @discardableResult
    func run(_ work: @escaping @Sendable () async -> Void) -> @Sendable () -> Void {
        state.with { state in
            let number = state.nextNumber
            state.nextNumber += 1
            let task = Task.detached { [self] in
                await work()
                self.state.with { $0.tasks[number] = nil }
            }
            // The task cannot be removed before it is added: removal waits for the lock.
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
