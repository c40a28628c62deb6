import HearthModel
import HearthRules
import HearthDocuments

/// Gives rules the state that a request reads.
///
/// Documents that rules request are cached, so that many judgements about one state read each of them once.
final class StateReader: DocumentReader {
    let view: ReadView
    private var documents: [ResourcePath: RulesDocument?] = [:]

    /// The most cached documents, because they may be large.
    private static let documentsMax = 16

    private let allowance: DecodingAllowance?
    private let check: () throws(Status) -> Void

    /// - Parameters:
    ///   - decodedBytesMax: the stored bytes that rules may make the reader decode; more fails with
    ///     `WorkMeter.isHeavier`.
    ///   - check: called before each document; ends the judgement when it throws.
    init(
        _ view: ReadView, decodedBytesMax: Int = .max, check: @escaping () throws(Status) -> Void = {}
    ) {
        self.view = view
        self.check = check
        allowance = decodedBytesMax == .max ? nil : DecodingAllowance(bytesMax: decodedBytesMax)
    }

    /// Resets the allowance for the next judgement.
    func renewAllowance() { allowance?.renew() }

    /// A document that is itself being judged.
    func resource(_ path: ResourcePath) throws(Status) -> RulesDocument? {
        try check()
        guard let document = try view.document(path) else { return nil }
        try allowance?.charge(document.fields.count / DecodingAllowance.readBytesPerByte)
        return RulesDocument(path: path, document, allowance)
    }

    /// A read changes nothing: the states before and after are equal.
    func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? {
        if let known = documents[path] { return known }
        if documents.count >= Self.documentsMax { documents = [:] }
        let document = try resource(path)
        documents[path] = .some(document)
        return document
    }
}
