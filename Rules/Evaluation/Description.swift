/// Values as texts for people: reports, explanations and `debug`.
extension Evaluation {
    /// As rules would write it; long values are cut.
    func description(of value: RuleValue) -> String {
        var text = ""
        describe(value, into: &text)
        return text
    }

    private func describe(_ value: RuleValue, into text: inout String) {
        guard text.utf8.count < RulesLimits.reportedValueBytesMax else { return }
        switch value {
        case .error(let failure): text += failure.text ?? "evaluation error"
        case .string(let string): describe(string, into: &text)
        case .bytes(let bytes):
            text +=
                "b'"
                + bytes.prefix(RulesLimits.reportedValueBytesMax).map { byte in
                    "\\x" + Hexadecimal.digits(byte, uppercase: false)
                }.joined() + "'"
        case .list(let list):
            describe(list.count, "[", "]", into: &text) { index, text in describe(list[index], into: &text) }
        case .set(let set):
            describe(set.count, "[", "].toSet()", into: &text) { index, text in
                describe(set.elements[index], into: &text)
            }
        case .map(let map):
            let entries = entries(of: map)
            describe(entries.count, "{", "}", into: &text) { index, text in
                describe(entries[index].name, into: &text)
                text += ": "
                describe(entries[index].value, into: &text)
            }
        case .timestamp(let time): text += "timestamp.value(\(time.milliseconds))"
        case .duration(let time): text += "duration.value(\(time.seconds), 's')"
        case .latlng(let place): text += "latlng.value(\(place.point.latitude), \(place.point.longitude))"
        case .vector(let values): text += "vector(\(values.count))"
        case .mapDiff: text += "map_diff"
        case .constraint: text += "constraint"
        default: text += Conversion.text(of: value) ?? value.typeName
        }
    }

    private func describe(_ string: String, into text: inout String) {
        let cut = String(string.prefix(RulesLimits.reportedValueBytesMax))
        text += "'" + cut.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }

    private func describe(
        _ count: Int, _ open: String, _ close: String, into text: inout String, _ element: (Int, inout String) -> Void
    ) {
        text += open
        for index in 0..<count {
            if text.utf8.count >= RulesLimits.reportedValueBytesMax {
                text += "…"
                break
            }
            if index > 0 { text += ", " }
            element(index, &text)
        }
        text += close
    }
}
