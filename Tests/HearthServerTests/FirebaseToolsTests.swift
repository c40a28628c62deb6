import HearthFirestoreServer
import HearthHost
import HearthModel
import HearthNetwork
import Testing

@testable import HearthServer

/// What Firebase's tools ask on the way to a deployment, over sockets.
@Suite struct FirebaseToolsTests {
    private static let secret = "a secret of the administrator"

    private func served() async throws -> ServedServer {
        try await ServedServer { configuration in
            configuration.isEmulator = false
            configuration.project = "p"
            configuration.identity.credentials = [
                .init(name: "all", secret: Self.secret),
                .init(name: "read", secret: "a secret that only reads", isReadOnly: true),
            ]
        }
    }

    @Test func servicesAndProjectsAreThere() async throws {
        let server = try await served()
        defer { server.stop() }
        let service = try await server.http(
            "GET", "/v1/projects/p/services/firestore.googleapis.com", token: Self.secret)
        #expect(service.status == 200 && service.body.contains(#""state":"ENABLED""#))
        let project = try await server.http("GET", "/v1beta1/projects/p", token: Self.secret)
        #expect(project.status == 200)
        #expect(project.body.contains(#""projectId":"p""#) && project.body.contains(#""projectNumber":"0""#))
        #expect(try await server.http("GET", "/v1beta1/projects/a%2Fb", token: Self.secret).status == 400)
        #expect(try await server.http("GET", "/v1beta1/projects/", token: Self.secret).status == 400)
    }

    @Test func permissionsAreThoseAskedFor() async throws {
        let server = try await served()
        defer { server.stop() }
        func ask(_ body: String, _ token: String = Self.secret) async throws -> (status: Int, body: String) {
            try await server.http("POST", "/v1/projects/p:testIamPermissions", body, token: token)
        }
        let body = #"{"permissions":["firebaserules.releases.update","datastore.indexes.list"]}"#
        #expect(try await ask(body).body == body)
        #expect(
            try await ask(body, "a secret that only reads").body == #"{"permissions":["datastore.indexes.list"]}"#)
        #expect(try await ask("{}").body == #"{"permissions":[]}"#)
        for wrong in [#"{"permissions":[1]}"#, #"{"permissions":"a"}"#, "[", #"{"other":[]}"#] {
            #expect(try await ask(wrong).status == 400)
        }
        let many = (0...100).map { "\"a.\($0)\"" }.joined(separator: ",")
        #expect(try await ask(#"{"permissions":[\#(many)]}"#).status == 400)
    }

    @Test func credentialsAreTheirOwnAccessTokens() async throws {
        let server = try await served()
        defer { server.stop() }
        func ask(_ body: String, _ type: String) async throws -> (status: Int, body: String) {
            try await server.http("POST", "/oauth2/v3/token", body, headers: [HTTPHeader("content-type", type)])
        }
        func part(_ name: String, _ value: String) -> String {
            "--XyZ\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
        }
        let form = "application/x-www-form-urlencoded"
        let encoded = Self.secret.replacing(" ", with: "+")
        let token = #""access_token":"\#(Self.secret)""#
        let plain = try await ask("grant_type=refresh_token&refresh_token=\(encoded)&client_id=x", form)
        #expect(plain.status == 200 && plain.body.contains(token) && plain.body.contains(#""expires_in":3600"#))
        // As Firebase's tools send it.
        let parts =
            part("refresh_token", Self.secret) + part("client_id", "x") + part("client_secret", "y")
            + part("grant_type", "refresh_token") + part("scope", "a b") + "--XyZ--\r\n"
        let multipart = try await ask(parts, "multipart/form-data; boundary=XyZ")
        #expect(multipart.status == 200 && multipart.body.contains(token))
        #expect(try await ask(parts, "multipart/form-data; boundary=\"XyZ\"").status == 200)
        for (body, type) in [
            ("grant_type=refresh_token&refresh_token=wrong", form), ("grant_type=refresh_token", form),
            ("grant_type=password&refresh_token=\(encoded)", form), ("", form), (parts, "multipart/form-data"),
            ("%", form), (parts, "application/json"), (parts, "multipart/form-data; boundary=Other"),
            (String(parts.dropLast(20)), "multipart/form-data; boundary=XyZ"),
        ] {
            let answer = try await ask(body, type)
            #expect(answer.status == 400 && answer.body.contains("\"error\":\"invalid_"), "\(body) \(type)")
            #expect(!answer.body.contains(Self.secret))
        }
        let large = try await ask(String(repeating: "a", count: Limits.tokenRequestBytesMax + 1), form)
        #expect(large.status == 413)
    }

    @Test func requestsThatAreTooLarge() async throws {
        let server = try await served()
        defer { server.stop() }
        let spaces = String(repeating: " ", count: 12 << 20)
        let answer = try await server.http("POST", "/v1/projects/p/rulesets", spaces, token: Self.secret)
        #expect(answer.status == 413)
        let ruleset = try await server.http(
            "POST", "/v1/projects/p/rulesets",
            #"{"source":{"files":[{"name":"f","content":"service cloud.firestore { match /a/b { allow read; } }\#(spaces.prefix(262_144))"}]}}"#,
            token: Self.secret)
        #expect(ruleset.status == 400 && ruleset.body.contains("262144"))
    }
}
