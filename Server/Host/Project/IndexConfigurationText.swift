import HearthModel
import HearthDocuments
import HearthWire

extension IndexConfiguration {
    /// The file's text, in the layout of the Firebase tools.
    package func json() -> [UInt8] {
        var text = IndentedJSON()
        text.open("{")
        text.member("indexes")
        text.open("[")
        for index in indexes { write(index, to: &text) }
        text.close("]")
        text.member("fieldOverrides")
        text.open("[")
        for override in overrides { write(override, to: &text) }
        text.close("]")
        text.close("}")
        text.writer.byte(UInt8(ascii: "\n"))
        return text.writer.bytes
    }

    private func write(_ index: IndexDefinition, to text: inout IndentedJSON) {
        text.item()
        text.open("{")
        text.member("collectionGroup", index.collectionID)
        text.member("queryScope", index.scope.rawValue)
        text.member("fields")
        text.open("[")
        for field in index.shownFields {
            text.item()
            text.open("{")
            text.member("fieldPath", field.path.text)
            write(field.kind, to: &text)
            text.close("}")
        }
        text.close("]")
        text.close("}")
    }

    private func write(_ override: FieldOverride, to text: inout IndentedJSON) {
        text.item()
        text.open("{")
        text.member("collectionGroup", override.collectionID)
        text.member("fieldPath", override.path?.text ?? "*")
        if override.isTimeToLive {
            text.member("ttl")
            text.writer.bool(true)
        }
        text.member("indexes")
        text.open("[")
        for index in override.indexes {
            text.item()
            text.open("{")
            text.member("queryScope", index.scope.rawValue)
            write(index.kind, to: &text)
            text.close("}")
        }
        text.close("]")
        text.close("}")
    }

    private func write(_ kind: IndexField.Kind, to text: inout IndentedJSON) {
        switch kind {
        case .ascending: text.member("order", "ASCENDING")
        case .descending: text.member("order", "DESCENDING")
        case .contains: text.member("arrayConfig", "CONTAINS")
        case .vector(let dimension):
            text.member("vectorConfig")
            text.open("{")
            text.member("dimension")
            text.writer.integer(Int64(dimension))
            text.member("flat")
            text.writer.raw("{}")
            text.close("}")
        }
    }
}

/// JSON for people: a member a line, two spaces a level.
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
