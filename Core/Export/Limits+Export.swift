import HearthModel

/// The bounds of this module; all are ours.
extension Limits {
    /// Bytes of one record of a managed export: a document has at most 1 MiB as Firestore counts it, but arrays repeat
    /// their field's name for each element.
    package static let exportRecordBytesMax = 32 << 20
    /// Bytes of a file that lists files: `*.export_metadata`, and a record of `*.overall_export_metadata`.
    package static let exportMetadataBytesMax = 16 << 20
    /// Documents that metadata say of one part.
    static let exportPartDocumentsMax = 1 << 40
    /// Bytes of a line of NDJSON.
    package static let exportLineBytesMax = 32 << 20
    /// Bytes after which the writer of a managed export begins another file.
    package static let exportFileBytesMax = 64 << 20
    /// Levels of maps in a record. Deeper ones are refused before `valueDepthMax` names the field.
    static let exportEntityDepthMax = 32
}
