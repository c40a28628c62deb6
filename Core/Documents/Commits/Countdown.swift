import HearthModel
import Synchronization

/// Waits for the results of several changes.
final class Countdown: Sendable {
    private let state: Mutex<(left: Int, made: Int, failure: Status?)>
    private let done: @Sendable (_ made: Int, _ failure: Status?) -> Void

    init(of count: Int, done: @escaping @Sendable (_ made: Int, _ failure: Status?) -> Void) {
        state = Mutex((count, 0, nil))
        self.done = done
    }

    func count(_ result: Result<Void, Status>) {
        step { state in
            switch result {
            case .success: state.made += 1
            case .failure(let status): state.failure = status
            }
        }
    }

    /// One of them need not be made.
    func skip() { step { _ in } }

    private func step(_ note: (inout (left: Int, made: Int, failure: Status?)) -> Void) {
        let ended = state.withLock { state -> (made: Int, failure: Status?)? in
            note(&state)
            state.left -= 1
            return state.left == 0 ? (state.made, state.failure) : nil
        }
        if let ended { done(ended.made, ended.failure) }
    }
}
