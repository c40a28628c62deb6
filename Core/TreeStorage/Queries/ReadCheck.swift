import HearthModel

/// Asked now and then by what reads a view: what it throws ends the read, however much is left.
///
/// Belongs to whoever has the view.
final class ReadCheck {
    /// Records, entries or children between two questions.
    static let readsMax = 256

    private let body: () throws(Status) -> Void
    private var left = ReadCheck.readsMax

    init(_ body: @escaping () throws(Status) -> Void) {
        self.body = body
    }

    func look() throws(Status) {
        left -= 1
        if left > 0 { return }
        left = Self.readsMax
        try ask()
    }

    func ask() throws(Status) { try body() }
}
