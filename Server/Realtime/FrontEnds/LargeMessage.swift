/// A message around JSON that is in a file.
package struct LargeMessage: Sendable {
    /// Neither is empty, nor longer than one frame.
    package let head: [UInt8]
    package let body: LargeJSON
    package let tail: [UInt8]

    var count: Int { head.count + Int(body.file.count) + tail.count }
}
