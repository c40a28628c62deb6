import HearthModel
import Testing

@testable import HearthRules

@Suite struct CommonRuleTests {
    @Test func anOwnerMayWrite() throws {
        let rules = try compiled(
            service(
                """
                function signedIn() { return request.auth != null; }
                match /notes/{note} {
                    allow write: if signedIn() && request.auth.uid == resource.data.owner;
                    allow read: if resource.data.public == true || signedIn();
                }
                """))
        let note = map(("owner", .string("alice")), ("public", .boolean(false)))
        #expect(rules.decide(request(.update, "notes/n", resource: note, newResource: note)).isAllowed)
        #expect(!rules.decide(request(.update, "notes/n", auth: nil, resource: note, newResource: note)).isAllowed)
        let bob = RulesAuth(uid: "bob")
        let denied = rules.decide(request(.delete, "notes/n", auth: bob, resource: note))
        #expect(denied.message == "\nfalse for 'delete' @ L5")
        #expect(rules.decide(request(.get, "notes/n", auth: bob, resource: note)).isAllowed)
        #expect(rules.decide(request(.get, "other/n")).message == "No matching allow statements")
    }
}
