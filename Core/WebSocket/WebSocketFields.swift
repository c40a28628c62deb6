enum WebSocketFields {
    /// The tokens of a list, lowercase.
    static func tokens(_ fields: [String]) -> [String] {
        fields.flatMap { field in
            field.split(separator: ",").map { part in
                var part = part[...]
                while let first = part.first, first == " " || first == "\t" { part = part.dropFirst() }
                while let last = part.last, last == " " || last == "\t" { part = part.dropLast() }
                return part.lowercased()
            }
        }
    }
}
