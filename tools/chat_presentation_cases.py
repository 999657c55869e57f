"""Expressions for chat_language_cases.py that try the filters which lay out text for people: wordwrap,
pprint, urlize, striptags, xmlattr, urlencode, filesizeformat."""

TEXT = ("The quick-brown fox -- well-known, self-made and a bit over-the-top -- can't jump\\tover "
        "that: \u201clazy\u201d dog...  Really?\\n\\n  Donaudampfschiffahrtsgesellschaft-kapit\u00e4n "
        "x-1 a--b \u65e5\u672c\u8a9e\u306e\u6587\u7ae0 e\u0301 ")

WRAPPED = [f"'{text}'|wordwrap({arguments})"
           for text in (TEXT.replace("'", "\\'"), "", "   ", "a", "a b", "-- a---b -c-d- ----------",
                        "x" * 25, "ab-cd-ef-gh-ij-kl", "a b " * 30, "one  two   three    four",
                        "lead\\r\\nline\\x0bvertical\\x1cfile\\u2028end", "\u00a0\u2003 x \u00a0")
           for arguments in ("", "5", "1", "10, false", "8, true, '|'", "9, break_on_hyphens=false",
                             "7, false, none, false", "12, wrapstring='<br>'")]

LONG = "'word ' * 30"
PRETTY = [f"({value})|pprint" for value in (
    "x", "f", "nil", "yes", "name", "uni", "html", "multi", "words", "users", "d", "nested", "tree",
    "[]", "{}", "()", "''", "(1,)", "[users, users]", "{'a': users, 'b': [nested, (1, 2)]}", LONG,
    f"[{LONG}]", f"{{'k': {LONG}}}", f"({LONG},)", f"{{'text': {LONG}, 'a': 1}}",
    "'a\\n' * 40", "['line one\\nline two\\n' * 6, 1]", "'x' * 100", "['x' * 100]",
    "'it is \\'quoted\\' and \"so\" ' * 5", "range(3)|list", "range(60)|list", "[[[[range(30)|list]]]]",
    "{'b': 1, 1: 2, 'a': 3, none: 4, 2.5: 5, true: 6}", "{'k' * 70: [1, 2, 3], 'z': {}}",
    "'\u65e5\u672c ' * 40", "[-1.5, 1e100, none, true]", "[words] * 9", "missing",
    "{'a': {'b': {'c': {'d': words * 4}}}}", f"[({LONG}).split()]", "'end  \\n  start' * 8",
    "d.items()|list", "[{'role': 'user', 'content': 'Hello there, how are you doing today? ' * 3}]")]

LINKED = [f"'{text}'|urlize({arguments})" for text, arguments in (
    ("see https://example.com/a?b=c&d=e#f, and (http://x.org).", ""),
    ("www.example.com/path www. www.x HTTP://UP.COM httpS://Mixed.Org/x", ""),
    ("example.com example.net/x. example.xyz a.com ab.com ab.info:80/x ab.com:123456 ab.com:", ""),
    ("http://localhost http://a http://ab http://127.0.0.1:8080/x http://1.2.3 http://1.2.3.4.5", ""),
    ("http://[::1]:80/ http://[fe80::1%25]/ http://[1:2:3:4:5:6:7:8] http://[1::] http://[12345::1]", ""),
    ("http://xn--bcher-kva.example http://b\u00fccher.de http://x.xn--p1ai/ http://-.com http://.com", ""),
    ("mailto:ada@example.com ada@example.com @a@b.c a@b a@b.c. a@b.c-d a@-b.c mailto:x ada@b..com", ""),
    ("(https://en.wikipedia.org/wiki/A_(b)) (www.a.com/(x)) <http://a.com/<b>> ((http://a.co/b)", ""),
    ("http://a.com/&quot; &lt;http://a.com&gt; http://a.com> \"http://a.com\"", ""),
    ("https://example.com/" + "x" * 60, "20"), ("https://example.com/abc", "0"),
    ("https://example.com/abc", "-3"), ("https://example.com/abc", "99"),
    ("https://example.com", "none, true"), ("https://example.com", "rel='me  nofollow me'"),
    ("https://example.com", "target='_blank'"), ("https://example.com", "target='\"<'"),
    ("tel:+123 ftp://x.y a:b", "extra_schemes=['tel:', 'ftp://']"), ("x", "extra_schemes=['x']"),
    ("tel: tel:1", "extra_schemes=['tel:']"), ("a", "extra_schemes=['a+b:///']"),
    ("line\\nhttp://a.com\\thttp://b.com  http://c.com\u2003www.d.com", ""), ("", ""),
    ("http://a.com,http://b.com http://a.com:80a http://a.com:80?x http://a_b.com http://a%b.com", ""),
    ("HTTP\u017f://x.com http://\u212aelvin.com WWW.X.COM http://x.c\u0131m", ""))]

STRIPPED = [f"'{text}'|striptags" for text in (
    "<p>a <b>bold</b>\\n move</p>", "a < b and c > d", "x <!-- a > b --> y", "<!-- open", "<open",
    "&lt;b&gt; &amp;amp; &quot;x&quot; &nbsp;|", "&copy &copy; &notit &AMP &ampx &xyz &T AT&T & &; &#",
    "&#65;&#x41;&#X4a &#8364;&#128;&#129;&#0;&#xD800;&#x110000;&#99999999999;&#1;&#x7f;&#xfdd0;|",
    "&hellip; &mdash; &eacute;&Eacute &yuml;&szlig", "", "  spaced\u2003 out ", "<b>", "<>a<>",
    "&#x;&#;&#xg", "&amp;lt;", "&gt&lt", "a<br>b<br/>c")]

ATTRIBUTES = [
    "{'class': 'a b', 'id': 1, 'off': none, 'html': html}|xmlattr", "{'a': 1}|xmlattr(false)",
    "{}|xmlattr", "{'a': none}|xmlattr", "{'a': missing}|xmlattr", "{'a b': 1}|xmlattr",
    "{'a>': 1}|xmlattr", "{'a=': 1}|xmlattr", "{'a/': 1}|xmlattr", "{1: 2}|xmlattr", "words|xmlattr",
    "{'\"q': '&'}|xmlattr", "{'a': '<b>'|safe}|xmlattr", "missing|xmlattr", "nil|xmlattr",
    "{'n': [1, '<']}|xmlattr(autospace=no)"]

ENCODED = [
    "{'a': 1, 'b c': 'x/y z'}|urlencode", "[('a', 1), ('b', '\u00e9&')]|urlencode", "{}|urlencode",
    "[]|urlencode", "[('a',)]|urlencode", "['ab', 'cd']|urlencode", "[1]|urlencode",
    "d.items()|urlencode", "nil|urlencode", "1.5|urlencode", "missing|urlencode", "words|urlencode",
    "'a b/c~d-e_f.g+'|urlencode", "'<b>'|safe|urlencode"]

SIZES = [f"{value}|filesizeformat{arguments}"
         for value in ("0", "1", "1.0", "2", "999", "999.9", "1000", "1023", "1024", "1500", "123456",
                       "999949", "999950", "1e6", "123456789", "5e9", "1e15", "1e24", "1e27", "1e30",
                       "(-5)", "(-1e20)", "(-0.5)", "'300'", "'1e3'", "'x'", "''", "true", "nil",
                       "missing", "words", "'inf'", "'nan'", "'-inf'")
         for arguments in ("", "(true)")]

OTHERS = ["words|map('wordwrap', 2)|list",
          "words|map('striptags')|join", "5|wordwrap", "nil|wordwrap", "'a'|wordwrap(0)",
          "''|wordwrap(0)", "'a'|wordwrap(-1)", "'a b'|wordwrap('2')", "'a'|wordwrap(wrapstring=1)",
          "html|urlize", "html|safe|urlize", "5|urlize", "nil|urlize", "html|striptags", "5|striptags",
          "html|safe|striptags", "html|striptags is escaped", "'wordwrap' is filter",
          "'pprint' is filter", "'random' is filter", "'nosuch' is filter", "nested|pprint|length",
          "uni|wordwrap(3)", "multi|wordwrap(1)", "padded|wordwrap(4)"]

PRESENTATION = WRAPPED + PRETTY + LINKED + STRIPPED + ATTRIBUTES + ENCODED + SIZES + OTHERS
