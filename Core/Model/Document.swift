/// A document as a value tree. Stored documents are in wire form (`HearthWire.EncodedDocument`); this form is for code
/// that needs the values: writes, filters, transforms, rules.
@usableFromInline package struct Document: Sendable, Equatable {
    /// The full name, or empty where a request omits it.
    @usableFromInline package var name: String
    @usableFromInline package var fields: MapValue
    @usableFromInline package var createTime: Timestamp?
    @usableFromInline package var updateTime: Timestamp?

    @inlinable package init(
        name: String = "", fields: MapValue = MapValue(), createTime: Timestamp? = nil, updateTime: Timestamp? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }
}
