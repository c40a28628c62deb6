/// The program's version.
package enum HearthVersion {
    package static let text = "0.1.0"
}
