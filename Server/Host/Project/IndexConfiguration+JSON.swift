import HearthModel
import HearthDocuments
import HearthWire

extension IndexConfiguration {
    /// The file's contents, in the layout of the Firebase tools.
    package func json() -> [UInt8] {
        var string = IndentedJSON()
        string.open("{")
        string.member("indexes")
        string.open("[")
        for index in indexes { write(index, to: &string) }
        string.close("]")
        string.member("fieldOverrides")
        string.open("[")
        for override in overrides { write(override, to: &string) }
        string.close("]")
        string.close("}")
        string.writer.byte(UInt8(ascii: "\n"))
        return string.writer.bytes
    }

    private func write(_ index: IndexDefinition, to string: inout IndentedJSON) {
        string.item()
        string.open("{")
        string.member("collectionGroup", index.collectionID)
        string.member("queryScope", index.scope.rawValue)
        string.member("fields")
        string.open("[")
        for field in index.shownFields {
            string.item()
            string.open("{")
            string.member("fieldPath", field.path.string)
            write(field.kind, to: &string)
            string.close("}")
        }
        string.close("]")
        string.close("}")
    }

    private func write(_ override: FieldOverride, to string: inout IndentedJSON) {
        string.item()
        string.open("{")
        string.member("collectionGroup", override.collectionID)
        string.member("fieldPath", override.path?.string ?? "*")
        if override.timeToLive != nil {
            string.member("ttl")
            string.writer.bool(true)
        }
        string.member("indexes")
        string.open("[")
        for index in override.indexes {
            string.item()
            string.open("{")
            string.member("queryScope", index.scope.rawValue)
            write(index.kind, to: &string)
            string.close("}")
        }
        string.close("]")
        string.close("}")
    }

    private func write(_ kind: IndexField.Kind, to string: inout IndentedJSON) {
        switch kind {
        case .ascending: string.member("order", "ASCENDING")
        case .descending: string.member("order", "DESCENDING")
        case .contains: string.member("arrayConfig", "CONTAINS")
        case .vector(let dimension):
            string.member("vectorConfig")
            string.open("{")
            string.member("dimension")
            string.writer.integer(Int64(dimension))
            string.member("flat")
            string.writer.raw("{}")
            string.close("}")
        }
    }
}

/// JSON for people: one member per line, two spaces per level.
private struct IndentedJSON {
    var writer = JSONWriter()
    private var depth = 0
    private var isFirst = true

    private mutating func newLine() {
        writer.byte(UInt8(ascii: "\n"))
        for _ in 0..<depth { writer.raw("  ") }
    }

    mutating func open(_ bracket: StaticString) {
        writer.raw(bracket)
        depth += 1
        isFirst = true
    }

    mutating func close(_ bracket: StaticString) {
        depth -= 1
        if !isFirst { newLine() }
        writer.raw(bracket)
        isFirst = false
    }

    mutating func item() {
        if !isFirst { writer.byte(UInt8(ascii: ",")) }
        isFirst = false
        newLine()
    }

    mutating func member(_ name: String) {
        item()
        writer.string(name)
        writer.raw(": ")
    }

    mutating func member(_ name: String, _ value: String) {
        member(name)
        writer.string(value)
    }
}
