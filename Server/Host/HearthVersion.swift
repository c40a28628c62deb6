/// The program's version.
package enum HearthVersion {
    package static let string = "0.1.0"
}
