import HearthModel
import HearthWire

/// JSON of any shape.
enum ConfigurationText {
    typealias Member = StructMessage.Member

    /// - Throws: INVALID_ARGUMENT when the text is no JSON object.
    static func object(_ json: String) throws(Status) -> StructMessage { try StructMessage(json: json) }
}
