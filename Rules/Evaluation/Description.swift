/// Values in readable form: reports, explanations and `debug`.
extension Evaluation {
    /// In the syntax of rules; long values are truncated.
    func description(of value: RuleValue) -> String {
        var string = ""
        describe(value, into: &string)
        return string
    }

    private func describe(_ value: RuleValue, into output: inout String) {
        guard output.utf8.count < RulesLimits.reportedValueBytesMax else { return }
        switch value {
        case .error(let failure): output += failure.string ?? "evaluation error"
        case .string(let string): describe(string, into: &output)
        case .bytes(let bytes):
            output +=
                "b'"
                + bytes.prefix(RulesLimits.reportedValueBytesMax).map { byte in
                    "\\x" + Hexadecimal.digits(byte, uppercase: false)
                }.joined() + "'"
        case .list(let list):
            describe(list.count, "[", "]", into: &output) { index, output in describe(list[index], into: &output) }
        case .set(let set):
            describe(set.count, "[", "].toSet()", into: &output) { index, output in
                describe(set.elements[index], into: &output)
            }
        case .map(let map):
            let entries = entries(of: map)
            describe(entries.count, "{", "}", into: &output) { index, output in
                describe(entries[index].name, into: &output)
                output += ": "
                describe(entries[index].value, into: &output)
            }
        case .timestamp(let time): output += "timestamp.value(\(time.milliseconds))"
        case .duration(let time): output += "duration.value(\(time.seconds), 's')"
        case .latlng(let point): output += "latlng.value(\(point.point.latitude), \(point.point.longitude))"
        case .vector(let values): output += "vector(\(values.count))"
        case .mapDiff: output += "map_diff"
        case .constraint: output += "constraint"
        default: output += Conversion.string(of: value) ?? value.typeName
        }
    }

    private func describe(_ string: String, into output: inout String) {
        let cut = string.cut(bytesMax: RulesLimits.reportedValueBytesMax)
        output += "'" + cut.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }

    private func describe(
        _ count: Int, _ open: String, _ close: String, into string: inout String, _ element: (Int, inout String) -> Void
    ) {
        string += open
        for index in 0..<count {
            if string.utf8.count >= RulesLimits.reportedValueBytesMax {
                string += "…"
                break
            }
            if index > 0 { string += ", " }
            element(index, &string)
        }
        string += close
    }
}

extension String {
    /// Its beginning, of at most so many bytes. Not of characters: one may have any number of accents.
    func cut(bytesMax: Int) -> String {
        if utf8.count <= bytesMax { return self }
        var end = utf8.index(startIndex, offsetBy: max(bytesMax, 0))
        while end > startIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
