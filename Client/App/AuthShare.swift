internal import Foundation

/// One database's share of a token provider. Several databases may observe the same provider: an `Auth`, or a provider
/// of the program, which accepts only one observer.
package final class AuthShare: AuthTokenProvider {
    private let provider: any AuthTokenProvider

    package init(_ provider: any AuthTokenProvider) { self.provider = provider }

    package func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        try await provider.token(forcingRefresh: isForcingRefresh)
    }

    package func observeUser(_ changed: (@Sendable (String?) -> Void)?) {
        if let auth = provider as? Auth { return auth.observeUser(changed, by: self) }
        SharedProvider.observe(provider, changed, by: self)
    }
}

/// The single observer of a provider, on behalf of all shares. It exists as long as there is a share with an observer.
private final class SharedProvider: Sendable {
    private typealias Observer = @Sendable (String?) -> Void

    private struct State {
        var observers: [ObjectIdentifier: Observer] = [:]
        /// nil: no user was reported yet.
        var user: String??
    }

    private static let all = Locked<[ObjectIdentifier: SharedProvider]>([:])
    /// Serializes the start and the end of observation. The provider is called under this lock, and may call back at
    /// once: therefore the lock is recursive.
    private static let observationLock = NSRecursiveLock()

    private let state = Locked(State())

    static func observe(
        _ provider: any AuthTokenProvider, _ changed: (@Sendable (String?) -> Void)?, by owner: AnyObject
    ) {
        observationLock.withLock {
            let id = ObjectIdentifier(provider)
            guard let changed else { return end(provider, id, owner) }
            if let shared = all.with({ $0[id] }) { return shared.add(changed, owner) }
            let shared = SharedProvider()
            shared.add(changed, owner)
            all.with { $0[id] = shared }
            provider.observeUser { shared.take($0) }
        }
    }

    private static func end(_ provider: any AuthTokenProvider, _ id: ObjectIdentifier, _ owner: AnyObject) {
        guard let shared = all.with({ $0[id] }) else { return }
        let isUnused = shared.state.with { state in
            state.observers[ObjectIdentifier(owner)] = nil
            return state.observers.isEmpty
        }
        if !isUnused { return }
        all.with { $0[id] = nil }
        provider.observeUser(nil)
    }

    private func add(_ changed: @escaping Observer, _ owner: AnyObject) {
        let user = state.with { state in
            state.observers[ObjectIdentifier(owner)] = changed
            return state.user
        }
        if case .some(let user) = user { changed(user) }
    }

    private func take(_ user: String?) {
        let observers = state.with { state in
            state.user = .some(user)
            return Array(state.observers.values)
        }
        for observer in observers { observer(user) }
    }
}
