import HearthModel
import HearthWire

/// Which documents a pointer of a managed export is about.
struct EntitySetMessage: WireMessage {
    /// 1: one collection group, 2: all.
    var kindType: Int32 = 0
    var kind = ""
    /// 1: the default namespace, 2: one, 3: all.
    var namespaceType: Int32 = 0
    var namespace = ""

    static let typeName = "hearth.export.EntitySetSpec"

    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int32(1, "kind_type", &kindType)
        try visitor.string(2, "kind", &kind)
        try visitor.int32(3, "namespace_type", &namespaceType)
        try visitor.string(4, "namespace", &namespace)
    }
}

/// One `export_metadata` file.
struct ExportPointerMessage: WireMessage {
    var entitySet: EntitySetMessage?
    /// Relative to the folder of the export.
    var path = ""
    var entityCount: Int64 = 0
    var sizeBytes: Int64 = 0

    static let typeName = "hearth.export.Pointer"

    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "entity_set", &entitySet)
        try visitor.string(2, "path", &path)
        try visitor.int64(3, "num_entities", &entityCount)
        try visitor.int64(4, "num_bytes", &sizeBytes)
    }
}

/// The second record of `*.overall_export_metadata`.
struct OverallExportMessage: WireMessage {
    var pointers: [ExportPointerMessage] = []

    static let typeName = "hearth.export.OverallExportMetadata"

    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "pointers", &pointers)
    }
}

/// The content of `*.export_metadata`.
struct ExportMetadataMessage: WireMessage {
    struct Run: WireMessage {
        var name = ""
        var startMicroseconds: Int64 = 0
        var endMicroseconds: Int64 = 0

        static let typeName = "hearth.export.Run"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "name", &name)
            try visitor.int64(2, "start", &startMicroseconds)
            try visitor.int64(3, "end", &endMicroseconds)
        }
    }

    struct Label: WireMessage {
        var label = ""

        static let typeName = "hearth.export.Label"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "label", &label)
        }
    }

    struct Files: WireMessage {
        var label = ""
        /// Relative to the folder of this file.
        var names: [String] = []
        var labels: [Label] = []
        var sizeBytes: Int64 = 0

        static let typeName = "hearth.export.Files"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "label", &label)
            try visitor.strings(2, "names", &names)
            try visitor.messages(3, "labels", &labels)
            try visitor.int64(5, "bytes", &sizeBytes)
        }
    }

    var run: Run?
    var files: [Files] = []

    static let typeName = "hearth.export.ExportMetadata"

    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "run", &run)
        try visitor.messages(2, "files", &files)
    }
}
