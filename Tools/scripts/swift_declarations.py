"""The declarations of Swift sources that `swift format` has formatted, without a compiler: bodies of functions are skipped."""

import re

TOKEN = re.compile(
    r"(?P<doc>///[^\n]*)|(?P<block>/\*\*.*?\*/)|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>(?P<hashes>\#*)\"(?:\"\")?)|(?P<directive>\#(?:if|elseif|else|endif)\b[^\n]*)"
    r"|(?P<word>`?[A-Za-z_$][A-Za-z0-9_]*`?|[0-9][0-9A-Za-z_.]*)|(?P<arrow>->)|(?P<space>\s+)|(?P<sign>.)", re.S)
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
TYPES = {"class", "struct", "enum", "protocol", "actor", "extension"}
MODIFIERS = {
    "public", "open", "package", "internal", "fileprivate", "private", "static", "final", "override", "mutating",
    "nonmutating", "convenience", "required", "lazy", "weak", "unowned", "nonisolated", "indirect", "dynamic", "optional",
    "consuming", "borrowing", "prefix", "postfix", "infix", "isolated", "distributed",
}
OPERATOR = re.compile(r"[-+*/=<>!&|^~?%]")
# The words that make a declaration count.
COUNTED = {"public", "open"}


class Token:
    def __init__(self, spelling, line, kind):
        self.spelling, self.line, self.kind = spelling, line, kind


def end_of_string(source, start, hashes):
    """Where the string literal that begins at `start` ends, with its interpolations."""
    quote = '"""' if source.startswith('"""', start + len(hashes)) else '"'
    position = start + len(hashes) + len(quote)
    while position < len(source):
        if source.startswith(quote + hashes, position):
            return position + len(quote) + len(hashes)
        if source.startswith("\\" + hashes + "(", position):
            depth, position = 1, position + len(hashes) + 2
            while position < len(source) and depth > 0:
                if source[position] == '"':
                    position = end_of_string(source, position, "")
                    continue
                depth += {"(": 1, ")": -1}.get(source[position], 0)
                position += 1
        elif source[position] == "\\" and not hashes:
            position += 2
        else:
            position += 1
    return position


def tokens_of(source):
    tokens, position, line = [], 0, 1
    while position < len(source):
        match = TOKEN.match(source, position)
        kind, end = match.lastgroup, match.end()
        if match.group("string") is not None:
            kind, end = "string", end_of_string(source, position, match.group("hashes"))
        spelling = source[position:end]
        if kind not in ("comment", "space", "directive"):
            tokens.append(Token(spelling, line, kind))
        line += spelling.count("\n")
        position = end
    return tokens


class Declaration:
    def __init__(self, file, line, kind, name, doc, parameters=(), returns=False, throws=False, waits=False):
        self.file, self.line, self.kind, self.name, self.doc = file, line, kind, name, doc
        self.parameters, self.returns, self.throws, self.waits = list(parameters), returns, throws, waits


class Parser:
    """Collects the declarations of a file: those of types and their members; bodies of functions are skipped."""

    def __init__(self, file, source):
        self.file, self.tokens, self.position = file, tokens_of(source), 0
        self.declarations = []
        # Names of the types that the file declares, with whether they are public.
        self.types = {}

    def spelling(self, ahead=0):
        index = self.position + ahead
        return self.tokens[index].spelling if index < len(self.tokens) else ""

    def skip_balanced(self):
        """Skips what a bracket at the position encloses, and returns its tokens."""
        start, open_brackets = self.position, []
        while self.position < len(self.tokens):
            spelling = self.spelling()
            if spelling in "([{" and spelling:
                open_brackets.append(CLOSING[spelling])
            elif open_brackets and spelling == open_brackets[-1]:
                open_brackets.pop()
            self.position += 1
            if not open_brackets:
                break
        return self.tokens[start + 1:self.position - 1]

    def skip_generics(self):
        """Skips `<…>` at the position."""
        depth = 0
        while self.position < len(self.tokens):
            depth += {"<": 1, ">": -1}.get(self.spelling(), 0)
            self.position += 1
            if depth == 0:
                return

    def members(self, owner, is_visible, access, kind):
        """Reads declarations up to the bracket that ends their owner's body."""
        doc, modifiers, is_new = [], [], True
        while self.position < len(self.tokens):
            token = self.tokens[self.position]
            spelling = token.spelling
            if token.kind in ("doc", "block"):
                doc = (doc if not is_new else []) + doc_lines(token)
                is_new = False
                self.position += 1
                continue
            if spelling == "}":
                return
            if spelling == "@":
                self.position += 2
                if self.spelling() == "(" and self.tokens[self.position].line == self.tokens[self.position - 1].line:
                    self.skip_balanced()
                continue
            if spelling in MODIFIERS or spelling == "class" and self.spelling(1) in ("func", "var", "let", "subscript"):
                self.position += 1
                if self.spelling() == "(":
                    modifiers.append(spelling + "(" + "".join(part.spelling for part in self.skip_balanced()) + ")")
                else:
                    modifiers.append(spelling)
                continue
            self.declaration(owner, is_visible, access, kind, doc, modifiers)
            doc, modifiers, is_new = [], [], True

    def declaration(self, owner, is_visible, access, kind, doc, modifiers):
        token = self.tokens[self.position]
        spelling = token.spelling
        levels = {"package", "internal", "fileprivate", "private"} - COUNTED
        is_public = is_visible and (bool(COUNTED & set(modifiers)) or access and not levels & set(modifiers))
        if spelling in TYPES:
            self.type_declaration(spelling, owner, is_visible, is_public, doc, bool(COUNTED & set(modifiers)))
        elif spelling in ("func", "init", "subscript") and (spelling == "func" or self.spelling(1) in ("(", "<", "?", "!")):
            self.function(spelling, owner, is_public, doc)
        elif spelling in ("var", "let") and token.kind == "word":
            self.property(owner, is_public, doc)
        elif spelling == "case" and kind == "enum":
            self.cases(owner, is_visible, doc)
        elif spelling in ("typealias", "associatedtype"):
            self.position += 1
            self.note(is_public, token.line, spelling, owner, self.spelling(), doc)
            self.position += 1
        elif spelling == "import":
            self.position += 2
        elif spelling in "([{" and spelling:
            self.skip_balanced()
        else:
            self.position += 1

    def note(self, is_public, line, kind, owner, name, doc, **rest):
        if is_public:
            name = name.strip("`")
            self.declarations.append(
                Declaration(self.file, line, kind, f"{owner}.{name}" if owner else name, doc, **rest))

    def type_declaration(self, kind, owner, is_visible, is_public, doc, says_public):
        self.position += 1
        line, name = self.tokens[self.position].line, self.spelling()
        self.position += 1
        while self.spelling() == ".":
            name += "." + self.spelling(1)
            self.position += 2
        full = f"{owner}.{name}" if owner else name
        if kind == "extension":
            # Whether the type is public is decided when all files are read.
            inner_visible, access = True, says_public
        else:
            self.types[full] = is_public
            self.note(is_public, line, kind, owner, name, doc)
            inner_visible, access = is_public, kind == "protocol"
        while self.position < len(self.tokens) and self.spelling() != "{":
            self.position += 1
        self.position += 1
        self.members(full, inner_visible, access, kind)
        self.position += 1

    def function(self, kind, owner, is_public, doc):
        self.position += 1
        line, name = self.tokens[self.position].line, kind
        if kind == "func":
            name = ""
            while self.spelling() not in ("(", "<") or not name and OPERATOR.match(self.spelling()):
                name += self.spelling()
                self.position += 1
        else:
            line = self.tokens[self.position - 1].line
            if self.spelling() in ("?", "!"):
                self.position += 1
        if self.spelling() == "<":
            self.skip_generics()
        labels, parameters = parameters_of(self.skip_balanced(), kind)
        if OPERATOR.match(name):
            labels = ["_"] * len(labels)
        throws, waits, returns = self.effects()
        self.note(
            is_public, line, kind, owner, name + "(" + "".join(label + ":" for label in labels) + ")", doc,
            parameters=parameters, throws=throws, waits=waits, returns=returns)
        self.constraints()
        if self.spelling() == "{":
            body = self.skip_balanced()
            if kind == "subscript" and self.declarations and is_public and getter_throws(body)[0]:
                self.declarations[-1].throws = True

    def effects(self):
        throws = waits = returns = False
        while self.spelling() in ("async", "throws", "rethrows", "reasync"):
            waits = waits or self.spelling() in ("async", "reasync")
            throws = throws or self.spelling() in ("throws", "rethrows")
            self.position += 1
            if self.spelling() == "(":
                self.skip_balanced()
        if self.spelling() == "->":
            self.position += 1
            type_spelling = self.type_spelling()
            returns = type_spelling not in ("Void", "()", "Swift.Void")
        return throws, waits, returns

    def type_spelling(self):
        """Reads a type: up to a body, a default value, a constraint or the next declaration."""
        parts, previous = [], None
        while self.position < len(self.tokens):
            token = self.tokens[self.position]
            if token.spelling in ("{", "=", "where", "}", ",") or token.kind in ("doc", "block"):
                break
            if previous and token.line != previous.line and previous.spelling not in ("->", "&", ".", ":") \
                    and token.spelling not in ("->", "&", ".", "throws", "async"):
                break
            if token.spelling in "([" and token.spelling:
                inner = self.skip_balanced()
                parts.append(token.spelling + "".join(part.spelling for part in inner) + CLOSING[token.spelling])
                previous = self.tokens[self.position - 1]
                continue
            if token.spelling == "<":
                start = self.position
                self.skip_generics()
                parts.append("".join(part.spelling for part in self.tokens[start:self.position]))
                previous = self.tokens[self.position - 1]
                continue
            parts.append(token.spelling)
            previous = token
            self.position += 1
        return "".join(parts)

    def constraints(self):
        if self.spelling() == "where":
            line = self.tokens[self.position].line
            while self.position < len(self.tokens) and self.spelling() not in ("{", "}") \
                    and self.tokens[self.position].kind not in ("doc", "block"):
                if self.tokens[self.position].line != line and self.spelling() in (MODIFIERS | {"func", "var", "init"}):
                    return
                self.position += 1

    def property(self, owner, is_public, doc):
        self.position += 1
        line, name = self.tokens[self.position].line, self.spelling()
        self.position += 1
        if self.spelling() == ":":
            self.position += 1
            self.type_spelling()
        throws = waits = False
        if self.spelling() == "=":
            line_of_value = self.tokens[self.position].line
            while self.position < len(self.tokens) and self.tokens[self.position].line == line_of_value:
                if self.spelling() in ("{", "(", "["):
                    self.skip_balanced()
                    line_of_value = self.tokens[self.position - 1].line
                elif self.spelling() == "}":
                    break
                else:
                    self.position += 1
        elif self.spelling() == "{":
            throws, waits = getter_throws(self.skip_balanced())
        self.note(is_public, line, "var", owner, name, doc, throws=throws, waits=waits)

    def cases(self, owner, is_visible, doc):
        self.position += 1
        while True:
            line, name = self.tokens[self.position].line, self.spelling()
            self.position += 1
            labels = []
            if self.spelling() == "(":
                labels = case_labels(self.skip_balanced())
                name += "(" + "".join(label + ":" for label in labels) + ")"
            self.note(is_visible, line, "case", owner, name, doc)
            if self.spelling() == "=":
                self.position += 2
                if self.tokens[self.position - 1].spelling == "-":
                    self.position += 1
            if self.spelling() != ",":
                return
            self.position += 1


def parts_of(tokens):
    """The parts that commas outside of brackets separate."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}.get(token.spelling, 0)
        if token.spelling == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def parameters_of(tokens, kind):
    """The labels of a function, and the names of its parameters."""
    labels, names = [], []
    for part in parts_of(tokens):
        words = []
        for token in part:
            if token.spelling == ":":
                break
            if token.kind == "word":
                words.append(token.spelling.strip("`"))
        labels.append("_" if kind == "subscript" and len(words) == 1 else words[0])
        names.append(words[-1])
    return labels, names


def case_labels(tokens):
    return [part[0].spelling if len(part) > 1 and part[1].spelling == ":" else "_" for part in parts_of(tokens)]


def getter_throws(body):
    """Whether `get` in a property's body throws, and whether it is asynchronous."""
    depth = 0
    for index, token in enumerate(body):
        if token.spelling == "get" and depth == 0:
            effects = []
            for following in body[index + 1:]:
                if following.spelling not in ("async", "throws"):
                    break
                effects.append(following.spelling)
            return "throws" in effects, "async" in effects
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.spelling, 0)
    return False, False


def doc_lines(token):
    if token.kind == "doc":
        return [token.spelling[3:].removeprefix(" ")]
    return [re.sub(r"^\s*\*? ?", "", line) for line in token.spelling[3:-2].split("\n")]


def declarations_of(sources):
    """The public declarations of (path, spelling) pairs. A member of an extension counts when its type is public or is another
    module's."""
    parsers, types = [], {}
    for file, source in sources:
        parser = Parser(file, source)
        while parser.position < len(parser.tokens):
            parser.members("", True, False, "file")
            parser.position += 1
        parsers.append(parser)
        types.update(parser.types)
    hidden = {name for name, is_public in types.items() if not is_public}

    def is_visible(declaration):
        name = declaration.name.split("(")[0]
        owners = [name[:index] for index, sign in enumerate(name) if sign == "."]
        return not any(owner in hidden for owner in owners)

    return [entry for parser in parsers for entry in parser.declarations if is_visible(entry)]
