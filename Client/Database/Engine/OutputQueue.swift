/// The engine's callbacks, in order. They run when the operation that raised them is finished and the state is
/// consistent, so callbacks may call the engine again; new callbacks are queued behind the waiting ones.
final class OutputQueue {
    private var waiting: [() -> Void] = []
    private var depth = 0
    private var isDelivering = false
    /// The end of an operation: runs before the callbacks.
    var finish: () -> Void = {}

    func append(_ output: @escaping () -> Void) { waiting.append(output) }

    /// Runs an operation, or a part of the present one.
    func perform<Result>(_ body: () -> Result) -> Result {
        depth += 1
        let result = body()
        if depth == 1 { finish() }
        depth -= 1
        if depth == 0 { deliver() }
        return result
    }

    private func deliver() {
        if isDelivering { return }
        isDelivering = true
        while !waiting.isEmpty {
            let outputs = waiting
            waiting = []
            for output in outputs { output() }
        }
        isDelivering = false
    }
}
