import Foundation
import Testing

/// `ApiSurface.swift` beside this file names every member of the API and is compiled with these tests: this one sees that
/// it is the shared one still.
@Suite(.enabled(if: Vectors.folder != nil, "../shared/conformance is absent"))
struct ApiSurfaceTests {
    @Test func isTheSharedFile() throws {
        let shared = try #require(Vectors.folder).deletingLastPathComponent()
            .appendingPathComponent("api-surface/ApiSurface.swift")
        let own = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("ApiSurface.swift")
        let expected = try String(contentsOf: shared, encoding: .utf8)
            .replacing("import FirebaseFirestore", with: "import HearthFirestore")
        #expect(try String(contentsOf: own, encoding: .utf8) == "// swift-format-ignore-file\n" + expected)
    }
}
