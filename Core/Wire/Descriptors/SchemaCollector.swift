import HearthModel

/// The declarations of messages, collected by visiting their fields as a codec would.
///
/// One list of fields serves every codec and the description of the protos, so that reflection cannot differ from what
/// is read and written.
struct SchemaCollector: FieldVisitor {
    typealias Failure = Never

    struct Field {
        var number: UInt32
        var name: String
        var type: FieldType
        var isRepeated = false
        var oneof: String?
    }

    enum FieldType {
        case double, int64, uint64, int32, bool, string, bytes, uint32
        case message(String)
        case enumeration(String)
    }

    /// Fields by the message's full name, in the order of declaration.
    private(set) var messages: [String: [Field]] = [:]
    private(set) var enums: [String: [(number: Int32, name: String)]] = [:]
    private(set) var mapEntries: Set<String> = []
    private var fields: [Field] = []
    private var owner = ""

    init() {
        messages = Self.known
        enums["google.protobuf.NullValue"] = [(0, "NULL_VALUE")]
        addEntry("google.firestore.v1.MapValue", "fields", .message("google.firestore.v1.Value"))
        addEntry("google.protobuf.Struct", "fields", .message("google.protobuf.Value"))
        add(TimestampMessage.self)
    }

    /// Declares the entry message of a map field, and returns its name.
    @discardableResult
    private mutating func addEntry(_ owner: String, _ field: String, _ value: FieldType) -> String {
        let camel = field.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        let name = "\(owner).\(camel)Entry"
        messages[name] = [Field(number: 1, name: "key", type: .string), Field(number: 2, name: "value", type: value)]
        mapEntries.insert(name)
        return name
    }

    /// Adds a message and all types that its fields name.
    mutating func add<M: WireMessage>(_ type: M.Type) {
        if messages[M.typeName] != nil { return }
        messages[M.typeName] = []
        let outer = (fields, owner)
        fields = []
        owner = M.typeName
        var message = M()
        message.visit(&self)
        messages[M.typeName] = fields
        (fields, owner) = outer
    }

    private mutating func add(
        _ number: UInt32, _ name: StaticString, _ type: FieldType, isRepeated: Bool = false, oneof: StaticString? = nil
    ) {
        fields.append(
            Field(
                number: number, name: name.description, type: type, isRepeated: isRepeated, oneof: oneof?.description))
    }

    private mutating func add<E: WireEnum>(_ type: E.Type) {
        enums[E.typeName] = E.names.map { ($0.number, $0.name.description) }
    }

    // MARK: Types that codecs write by hand

    /// The declarations of types whose `visit` is empty or that have no struct.
    static let known: [String: [Field]] = [
        "google.firestore.v1.Value": [
            Field(number: 11, name: "null_value", type: .enumeration("google.protobuf.NullValue"), oneof: "value_type"),
            Field(number: 1, name: "boolean_value", type: .bool, oneof: "value_type"),
            Field(number: 2, name: "integer_value", type: .int64, oneof: "value_type"),
            Field(number: 3, name: "double_value", type: .double, oneof: "value_type"),
            Field(
                number: 10, name: "timestamp_value", type: .message("google.protobuf.Timestamp"), oneof: "value_type"),
            Field(number: 17, name: "string_value", type: .string, oneof: "value_type"),
            Field(number: 18, name: "bytes_value", type: .bytes, oneof: "value_type"),
            Field(number: 5, name: "reference_value", type: .string, oneof: "value_type"),
            Field(number: 8, name: "geo_point_value", type: .message("google.type.LatLng"), oneof: "value_type"),
            Field(
                number: 9, name: "array_value", type: .message("google.firestore.v1.ArrayValue"), oneof: "value_type"),
            Field(number: 6, name: "map_value", type: .message("google.firestore.v1.MapValue"), oneof: "value_type"),
        ],
        "google.firestore.v1.ArrayValue": [
            Field(number: 1, name: "values", type: .message("google.firestore.v1.Value"), isRepeated: true)
        ],
        "google.firestore.v1.MapValue": [
            Field(
                number: 1, name: "fields", type: .message("google.firestore.v1.MapValue.FieldsEntry"), isRepeated: true)
        ],
        "google.type.LatLng": [
            Field(number: 1, name: "latitude", type: .double), Field(number: 2, name: "longitude", type: .double),
        ],
        "google.protobuf.Struct": [
            Field(number: 1, name: "fields", type: .message("google.protobuf.Struct.FieldsEntry"), isRepeated: true)
        ],
        "google.protobuf.Value": [
            Field(number: 1, name: "null_value", type: .enumeration("google.protobuf.NullValue"), oneof: "kind"),
            Field(number: 2, name: "number_value", type: .double, oneof: "kind"),
            Field(number: 3, name: "string_value", type: .string, oneof: "kind"),
            Field(number: 4, name: "bool_value", type: .bool, oneof: "kind"),
            Field(number: 5, name: "struct_value", type: .message("google.protobuf.Struct"), oneof: "kind"),
            Field(number: 6, name: "list_value", type: .message("google.protobuf.ListValue"), oneof: "kind"),
        ],
        "google.protobuf.ListValue": [
            Field(number: 1, name: "values", type: .message("google.protobuf.Value"), isRepeated: true)
        ],
        "google.protobuf.Int32Value": [Field(number: 1, name: "value", type: .int32)],
        "google.protobuf.Int64Value": [Field(number: 1, name: "value", type: .int64)],
        "google.protobuf.DoubleValue": [Field(number: 1, name: "value", type: .double)],
        "google.protobuf.FieldMask": [Field(number: 1, name: "paths", type: .string, isRepeated: true)],
    ]

    // MARK: Fields

    mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) {
        add(number, name, .string)
    }
    mutating func string(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?) {
        add(number, name, .string, oneof: group)
    }
    mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) {
        add(number, name, .string, isRepeated: true)
    }
    mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        add(number, name, .bytes)
    }
    mutating func bytes(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?) {
        add(number, name, .bytes, oneof: group)
    }
    mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) {
        add(number, name, .bool)
    }
    mutating func bool(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?) {
        add(number, name, .bool, oneof: group)
    }
    mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) {
        add(number, name, .int32)
    }
    mutating func int32(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?) {
        add(number, name, .int32, oneof: group)
    }
    mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32]) {
        add(number, name, .int32, isRepeated: true)
    }
    mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) {
        add(number, name, .int64)
    }
    mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) {
        add(number, name, .uint32)
    }
    mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) {
        add(number, name, .uint64)
    }
    mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double) {
        add(number, name, .double)
    }
    mutating func enumeration<E: WireEnum>(_ number: UInt32, _ name: StaticString, _ value: inout E) {
        add(E.self)
        add(number, name, .enumeration(E.typeName))
    }
    mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) {
        add(E.self)
        add(number, name, .enumeration(E.typeName), oneof: group)
    }
    mutating func message<M: WireMessage>(_ number: UInt32, _ name: StaticString, _ value: inout M?) {
        add(M.self)
        add(number, name, .message(M.typeName))
    }
    mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) {
        add(M.self)
        add(number, name, .message(M.typeName), oneof: group)
    }
    mutating func messages<M: WireMessage>(_ number: UInt32, _ name: StaticString, _ values: inout [M]) {
        add(M.self)
        add(number, name, .message(M.typeName), isRepeated: true)
    }
    mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?) {
        add(number, name, .message("google.protobuf.Int32Value"))
    }
    mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?) {
        add(number, name, .message("google.protobuf.Int64Value"))
    }
    mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?) {
        add(number, name, .message("google.protobuf.DoubleValue"))
    }
    mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?) {
        add(number, name, .message("google.protobuf.FieldMask"))
    }
    mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap) {
        let entry = addEntry(owner, name.description, .string)
        add(number, name, .message(entry), isRepeated: true)
    }
    mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) {
        add(number, name, .message("google.firestore.v1.Value"))
    }
    mutating func value(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?) {
        add(number, name, .message("google.firestore.v1.Value"), oneof: group)
    }
    mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value]) {
        add(number, name, .message("google.firestore.v1.Value"), isRepeated: true)
    }
    mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ values: inout [Value]?
    ) {
        add(number, name, .message("google.firestore.v1.ArrayValue"), oneof: group)
    }
    mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue) {
        let entry = addEntry(owner, name.description, .message("google.firestore.v1.Value"))
        add(number, name, .message(entry), isRepeated: true)
    }
    mutating func presence(_ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool) {
        // Only the presence of such a message is stored; its members are not described.
        add(EmptyMessage.self)
        add(number, name, .message(EmptyMessage.typeName), oneof: group)
    }
}
