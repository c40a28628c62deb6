import HearthModel
import HearthWire
import Testing

@testable import HearthBundle

/// The samples of `HearthBundle.docc`; `HearthGuideTests` compares them with its pages.
@Suite struct CatalogueTests {
    @Test func theSamplesBuildAndReadABundle() throws {
        let bytes = try built()
        let read = try documents(of: bytes, database: TestData.database)
        #expect(read.map(\.name.string) == ["\(TestData.root)/stories/a"])
        #expect(read.map(\.queries) == [["latest"]])
        #expect(throws: Status.self) { try documents(of: bytes.dropLast(), database: TestData.database) }
    }

    private func built() throws -> [UInt8] {
        let parent = try ResourceName(parent: TestData.root)
        let stories = [BuilderTests.document("stories/a")]
        let readTime = BuilderTests.now
        // sample: bundle-build
        var builder = try BundleBuilder(id: "front-page")
        let query = StructuredQueryMessage(from: [.init(collectionId: "stories")])
        try builder.add(query: "latest", parent: parent, query, readTime: readTime)
        for story in stories {
            try builder.add(story, readTime: readTime, query: "latest")
        }
        let bundle = try builder.build()
        // end
        return bundle
    }

    // sample: bundle-read
    func documents(of bundle: some Collection<UInt8>, database: DatabaseName) throws -> [BundleDocument] {
        var reader = BundleReader(database: database)
        reader.feed(bundle)  // or piece by piece
        reader.finish()
        var documents: [BundleDocument] = []
        while let element = try reader.next() {
            if case .document(let document) = element { documents.append(document) }
        }
        return documents
    }
    // end
}
