"""Expressions for chat_language_cases.py, one a line: filters of one value, that is
numbers, conversions, escaping, indenting and JSON."""

VALUES = r"""
-5|abs
-5.5|abs
(-5)|abs
'a'|abs
'42'|int
'42.9'|int
42.9|int
-42.9|int
'abc'|int
'abc'|int(7)
'ff'|int(base=16)
'0x1f'|int(0, 16)
' 12 '|int
'1_000'|int
true|int
none|int
[]|int(3)
'1.5'|float
'abc'|float
'abc'|float(1.0)
'inf'|float
'1e3'|float
'nan'|float
3|float
none|float
2.5|round
3.5|round
-2.5|round
2.675|round(2)
42.55|round(1)
42|round
42.55|round(1, 'floor')
42.51|round(0, 'ceil')
1234.5|round(-2)
1250|round(-2)
1350|round(-2)
1.5|round(method='nope')
5|string
none|string
5|string + 'a'
html|escape
html|e
html|safe
html|e|e
html|e|forceescape
html|safe|e
'<'|safe + '<'
'<' + '<'|safe
'<'|safe ~ '<'
'<'|safe + '<'|safe + '&'
('<'|safe) * 2 + '<'
'<%s>'|safe % '<'
'<%s>'|safe|format('<')
'<%d>'|safe % 5
'<{}>'.format('<')
('<{}>'|safe).format('<')
('<{:>3}>'|safe).format('<')
(' < '|safe).strip() + '<'
('<a'|safe)|upper + '<'
('<a'|safe)|title + '<'
('<a'|safe)|trim + '<'
('<a'|safe)[1:] + '<'
('<a'|safe)|reverse + '<'
('a,<'|safe).split(',')[1] + '<'
('a'|safe).replace('a', '<')
('a'|safe)|replace('a', '<')
('<'|safe).join(['<', '&'])
['<', '&'|safe]|join('<')
['<'|safe]
('<'|safe) is escaped
('<'|safe) is string
('<'|safe) == '<'
{'<': 1}['<'|safe]
('<'|safe)|string + '<'
('<'|safe)|tojson
('a\nb'|safe)|indent + '<'
('<'|safe)|first + '<'
('<'|safe)|list|first + '<'
('<a b c d e f'|safe)|truncate(5, true, '<', 0)
1 + '<'|safe
('<'|safe)|center(5) + '<'
'a b'|urlencode
'a/b?c=\u00e9&~'|urlencode
'the quick brown fox'|wordcount
''|wordcount
'don\'t stop'|wordcount
multi|indent
multi|indent(2)
multi|indent(2, true)
multi|indent(2, blank=true)
multi|indent('> ', first=true)
'a\n'|indent
''|indent(first=true)
'the quick brown fox jumps'|truncate(12)
'the quick brown fox jumps'|truncate(12, true)
'the quick brown fox jumps'|truncate(12, true, '')
'the quick brown fox jumps'|truncate(12, leeway=0)
'the quick brown fox jumps'|truncate(22)
'short'|truncate(2)
'abc'|center(9) ~ '|'
name|tojson
d|tojson
html|tojson
uni|tojson
uni|tojson(ensure_ascii=true)
[1, 2.0, 1e20, none, true, 'a']|tojson
{'b': 1, 'a': [1, {'x': {}}], 'c': []}|tojson(indent=2)
{'b': 1, 'a': [1]}|tojson(indent=4, sort_keys=true)
{'b': 1, 'a': [1]}|tojson(separators=(',', ':'))
[1, [2]]|tojson(indent='--')
[]|tojson(indent=2)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
(1, 2)|tojson
'\x00\x1f\x7f\u2028/'|tojson
'\b\f\n\r\t"\\'|tojson
range(3)|tojson
{}.items()|tojson
users|map(attribute='name')|tojson
1.0|tojson
1e400|string
users|tojson
d|string
""".strip("\n").split("\n")
