/// What a commit did to one document.
package struct Change: Sendable {
    package var key: [UInt8]
    package var before: StoredDocument?
    package var after: StoredDocument?
}
