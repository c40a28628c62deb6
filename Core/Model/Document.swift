/// A document as a value tree. Stored documents are in wire form (`HearthWire.EncodedDocument`); this form is for code
/// that needs the values: writes, filters, transforms, rules.
package struct Document: Sendable, Equatable {
    /// The full name, or empty where a request omits it.
    package var name: String
    package var fields: MapValue
    package var createTime: Timestamp?
    package var updateTime: Timestamp?

    @inlinable package init(
        name: String = "", fields: MapValue = MapValue(), createTime: Timestamp? = nil, updateTime: Timestamp? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }
}
