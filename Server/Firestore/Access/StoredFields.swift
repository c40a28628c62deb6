import HearthModel
import HearthRules
import HearthDocuments
import HearthWire

/// Encoded fields, for rules that read few of them.
private final class StoredFields: LargeFields {
    private let reader: FieldsReader
    private let allowance: DecodingAllowance?

    init(_ bytes: [UInt8], _ allowance: DecodingAllowance?) {
        reader = FieldsReader(bytes)
        self.allowance = allowance
    }

    func member(_ path: [String]) throws(Status) -> LargeFieldsMember? {
        let (part, namesSeen) = try reader.part(
            at: FieldPath(segments: path), mapSizeBytesMax: RulesDocument.decodedBytesMax)
        try allowance?.charge(namesSeen / DecodingAllowance.namesPerByte)
        switch part {
        case nil: return nil
        case .value(let value, let sizeBytes):
            try allowance?.charge(sizeBytes)
            return .value(value)
        case .largeMap: return .largeMap
        }
    }

    func map(at path: [String]) throws(Status) -> MapValue {
        try allowance?.charge(reader.bytes.count)
        if path.isEmpty { return try FieldsCodec.decode(reader.bytes) }
        guard case .map(let map)? = try reader.value(at: FieldPath(segments: path)) else {
            throw Status(.dataLoss, "What was a map in a stored document is none.")
        }
        return map
    }
}

extension RulesDocument {
    /// - Parameter allowance: the limit on decoding; nil for none.
    convenience init(path: ResourcePath, _ document: StoredDocument, _ allowance: DecodingAllowance? = nil) {
        if document.fields.count > Self.decodedBytesMax {
            self.init(path: path, large: StoredFields(document.fields, allowance))
        } else {
            self.init(path: path) { () throws(Status) in
                try allowance?.charge(document.fields.count)
                return try FieldsCodec.decode(document.fields)
            }
        }
    }

    /// The size up to which encoded fields, or a map in them, are decoded as a whole for one member.
    fileprivate static let decodedBytesMax = 8 << 10
}
