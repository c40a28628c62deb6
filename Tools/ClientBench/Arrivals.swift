import Foundation

/// Numbers that listeners have seen.
final class Arrivals: @unchecked Sendable {
    private let lock = NSLock()
    private var seen: Set<Int> = []
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]

    func note(_ number: Int) {
        lock.lock()
        seen.insert(number)
        let continuation = waiting.removeValue(forKey: number)
        lock.unlock()
        continuation?.resume()
    }

    func wait(for number: Int) async {
        await withCheckedContinuation { continuation in
            lock.lock()
            if seen.contains(number) {
                lock.unlock()
                continuation.resume()
            } else {
                waiting[number] = continuation
                lock.unlock()
            }
        }
    }
}
