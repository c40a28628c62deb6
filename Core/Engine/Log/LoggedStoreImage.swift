import HearthConcurrency
import HearthModel

/// An image of a `LoggedStore` is the base's file when it has all commits up to one: the frozen trees are applied, and the next
/// ones are not begun.
///
/// 1. `waiting`: an earlier application is under way.
/// 2. `held`: there is none, and none begins, so that several stores decide at one moment which commit is the last one.
/// 3. `applying`: the active trees were frozen at that moment, and are applied.
/// 4. `due`: they are applied, and none are frozen before an applier has opened the base's image.
///
/// Writes go on meanwhile: they fill the active trees.
struct LoggedImaging {
    enum Phase { case waiting, held, applying, due }

    let request: ImageRequest
    var phase = Phase.waiting
    var holds: Bool

    /// The base may not be written.
    var forbidsFreezing: Bool { phase == .held || phase == .due }
}

extension LoggedStore {
    /// Makes an image that has every commit that was acknowledged before. Waits for a commit under way, no longer.
    /// - Parameter request: ends with the image, or with UNAVAILABLE when the store is closed or the base can't be written,
    ///   RESOURCE_EXHAUSTED while another one is being made, FAILED_PRECONDITION for a store that is only read.
    package func begin(_ request: ImageRequest) {
        gate.lock()
        defer { unlockGate() }
        do throws(Status) {
            try life.check()
            if options.isReadOnly { throw .failedPrecondition("The database was opened for reading only.") }
            if imaging != nil { throw .resourceExhausted("Another backup of this database is under way.") }
        } catch {
            return request.end(.failure(error))
        }
        imaging = LoggedImaging(request: request, holds: request.holds)
        counters.isImageWanted.store(true, ordering: .relaxed)
        advanceImage()
    }

    /// Ends the hold of a request, at once or when it begins.
    package func release(_ request: ImageRequest) {
        gate.lock()
        defer { unlockGate() }
        guard imaging?.request === request else { return }
        imaging?.holds = false
        if imaging?.phase == .held { freezeForImage() }
    }

    /// Ends a request that nobody waits for any more.
    package func cancel(_ request: ImageRequest) {
        gate.lock()
        defer { unlockGate() }
        request.end(.failure(.unavailable("The backup was ended.")))
        // One that is due is ended by the applier.
        guard imaging?.request === request, imaging?.phase != .due else { return }
        forgetImage()
        freezeIfDue()
    }

    /// Waits for the image that is being made: an application takes a moment.
    func finishImage(within milliseconds: Int) {
        let request = gate.withLock { life.isOpen ? imaging?.request : nil }
        _ = request?.hasEnded(within: milliseconds)
    }

    // MARK: Under the gate

    /// After an application has ended, and at the start.
    func advanceImage() {
        switch imaging?.phase {
        case .waiting:
            if present.layers.hasFrozen { return }
            guard imaging?.holds == true else { return freezeForImage() }
            imaging?.phase = .held
            imaging?.request.becameReady()
        case .applying: imageIsDue()
        case .held, .due, nil: break
        }
    }

    private func freezeForImage() {
        imaging?.phase = .applying
        imaging?.request.decided()
        freeze()
        if !present.layers.hasFrozen { imageIsDue() }
    }

    private func imageIsDue() {
        imaging?.phase = .due
        let request = imaging?.request
        jobs.withLock { dueImage = request }
        self.request()
    }

    func forgetImage() {
        imaging = nil
        counters.isImageWanted.store(false, ordering: .relaxed)
    }

    /// Passes the base's image on, when the store may go on and make another one.
    func finishImage() {
        let opened = jobs.withLock {
            defer { openedImage = nil }
            return openedImage
        }
        guard let opened else { return }
        if imaging?.request === opened.request { forgetImage() }
        opened.request.end(opened.result)
    }

    /// The base can't be written, so that there would be no image for long.
    func failImage() {
        guard let failure = jobs.withLock({ applicationFailure }), let imaging, imaging.phase != .due else { return }
        imaging.request.end(.failure(failure))
        forgetImage()
    }

    /// For the store's end.
    func endImage(_ reason: Status) {
        imaging?.request.end(.failure(reason))
        forgetImage()
    }

    // MARK: On the appliers' threads

    /// Opens the base's image, when it is due. Without the gate: the base's own lock may be held for a while.
    /// - Returns: whether it did.
    func openDueImage() -> Bool {
        let due = jobs.withLock {
            defer { dueImage = nil }
            return dueImage
        }
        guard let due else { return false }
        let result = Result { () throws(Status) in try UnmarkedImage.of(try base.image()) }
        jobs.withLock { openedImage = (due, result) }
        return true
    }
}
