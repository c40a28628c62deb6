import HearthModel

/// Called regularly by the reads of a view: an error that it throws ends the read.
///
/// Belongs to the owner of the view.
final class ReadCheck {
    /// The number of records, entries or children between two calls.
    static let readsMax = 256

    private let body: () throws(Status) -> Void
    private var left = ReadCheck.readsMax

    init(_ body: @escaping () throws(Status) -> Void) {
        self.body = body
    }

    func countRead() throws(Status) {
        left -= 1
        if left > 0 { return }
        left = Self.readsMax
        try ask()
    }

    func ask() throws(Status) { try body() }
}
