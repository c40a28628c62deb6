/// What the engine has to tell, in order. It is told when the operation that raised it is over and the state is whole, so those
/// who are told may call the engine again; what that raises comes behind what waits already.
final class OutputQueue {
    private var waiting: [() -> Void] = []
    private var depth = 0
    private var isDelivering = false
    /// The end of an operation: what has to be done before anybody is told.
    var finish: () -> Void = {}

    func append(_ output: @escaping () -> Void) { waiting.append(output) }

    /// Runs an operation, or a part of the one that is running.
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
