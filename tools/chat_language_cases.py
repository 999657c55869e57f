"""Small templates that try the language itself: what they render to, or that they fail, is decided
by jinja2 (make_chat_fixture.py). All see VARIABLES."""
from chat_presentation_cases import PRESENTATION

VARIABLES = {
    "x": 5,
    "f": 2.5,
    "name": "World",
    "words": ["apple", "Banana", "cherry"],
    "nums": [3, 1, 2],
    "users": [{"name": "Ada", "age": 36, "city": "London", "tags": ["math", "code"]},
              {"name": "bob", "age": 41, "city": "Paris", "tags": []},
              {"name": "Cid", "age": 36, "city": "london", "tags": ["x"]}],
    "d": {"b": 2, "a": 1, "items": "own", "C": 3},
    "nested": {"list": [{"k": "v"}], "deep": {"er": {"value": 42}}},
    "tree": [{"n": "r", "kids": [{"n": "a", "kids": [{"n": "b", "kids": []}]},
                                 {"n": "c", "kids": []}]}],
    "empty": "",
    "uni": "na\u00efve \u2603 \U0001f600 \u00df",
    "html": "<a href='x'>&\"</a>",
    "yes": True,
    "no": False,
    "nil": None,
    "multi": "a\nb\n\nc",
    "padded": "  \t spaced \n",
}

# One expression each, printed.
EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 / 2
6 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
-7.5 // 2
7.5 % 2
-7.5 % 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2 ** 0.5
1.0
1e3
1e16
1e15
1.5e300
1e-5
0.0001
0.1 + 0.2
1 / 3
100.0
123456789.123
1e22
-0.0
5 - 3 - 1
1 - -1
+x
-x
- f
x ~ f ~ name
1 ~ 2 + 3
1 + 2 ~ 3
'a' + 'b'
'a' * 3
3 * 'ab'
[1] + [2, 3]
[0] * 3
(1, 2) + (3,)
1 + true
true + true
1 + 1.5
'a' + 1
1 + 'a'
[1] + 'a'
{} + {}
x / 0
x // 0
x % 0
1.5 / 0
1.5 % 0
1.5 // 0
1 == 1.0
1 == true
'1' == 1
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
none == none
none == false
1 != 2
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1
1 < 2 > 1
'a' < 'b'
'B' < 'a'
[1, 2] < [1, 3]
[1] < [1, 0]
(1, 'a') < (1, 'b')
1 < 'a'
none < 1
[] < 1
1 <= 1
2 >= 3
1 in [1, 2]
1.0 in [1, 2]
'1' in [1, 2]
4 not in nums
'a' in 'cat'
'x' not in 'cat'
'' in 'cat'
1 in 'cat'
'a' in d
'z' in d
'v' in d.values()
1 in 5
not true
not not x
not ''
not []
not 0
not none
not undefined_thing
true and false
1 and 2
0 and 2
'' or 'fallback'
1 or 2
none or false
not 1 == 2
not 1 in [2]
1 if true else 2
1 if false else 2
1 if false
'a' if x > 3 else 'b' if x > 1 else 'c'
(1 if no) is undefined
true
True
false
False
none
None
nil
yes
[1, 'a', 2.5, none, true, [], {}, ()]
(1,)
(1, 2)
()
1, 2
{'a': 1, 'b': [1, {'c': none}]}
{1: 'a', 'x': 2, none: 3, true: 4, 1.5: 5}
{1: 'a', 1.0: 'b', true: 'c'}
{[1]: 2}
{(1, 2): 3}
['it\'s', "say \"hi\"", 'both \' and "']
['line\nbreak', 'tab\t', 'back\\slash', '\x01', '\u00e9', '\u200b', '\U0001f600', '\x7f', '\xa0']
'\x41\u00e9\U0001f600\101\n|'
'\d\q'
'a' 'b' "c"
words
users[1]
d
uni
[uni]
words[0]
words[-1]
words[10]
words[10] is defined
words['0']
words.0
words[1:]
words[:-1]
words[::-1]
words[::2]
words[5:]
words[-100:100]
nums[1:2]
(1, 2, 3)[1:]
range(10)[2:5]|list
'hello'[1]
'hello'[-1]
'hello'[1:3]
'hello'[::-1]
'hello'[::2]
'hello'[4:1:-1]
'hello'[10:]
'hello'[-3:]
'hello'[:-3]
'hello'[5]
uni[2]
uni[-3]
uni[6:9]
uni[::-1]
'abc'[::0]
words['a':]
d['a']
d.a
d['items']
d.zzz
d.zzz is defined
d['zzz'] is undefined
d.zzz.y
d['zzz']['y']
missing
missing.attr
missing['a']
missing()
missing + 1
missing ~ 'x'
missing == missing
missing == none
missing|length
missing|list
missing is defined
missing|default('d')
missing.a|default('d')
d.q|default('d')
none|default('d')
none|default('d', true)
''|default('d', true)
0|d(7, boolean=true)
missing|default
missing < 1
missing in [1]
'a' in missing
[missing]
-missing
missing|int
missing|upper
missing|join
missing|tojson
x.foo
x['foo'] is undefined
none.foo
none.foo.bar
none['a'].b
name.foo.bar
words.foo.bar
nested.list[0].k
nested['deep'].er['value']
nested.deep.er.value + 1
users|length
users|count
name|length
uni|length
d|length
5|length
none|length
name|upper
name|lower
'hello world'|capitalize
'HELLO wORLD'|capitalize
'hello world-foo (bar) o\'neil'|title
'hello world o\'neil x1y'.title()
uni|upper
uni.upper()
'\u00df'|capitalize
'\u01c6'.title()
'\u0130'|lower
'\u03a3\u03a3'|upper
padded|trim
padded|trim|length
'xxhixx'|trim('x')
'xyhiyx'.strip('xy')
padded.strip()
padded.lstrip()
padded.rstrip()
'  a '.strip(none)
'aXbX'.rstrip('X')
'aXbX'.lstrip('a')
'\u00a0a\u2003'.strip()
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.split(',')[-1]
'a b  c '.split()
'a b  c '.split(' ')
' a b  c '.split(none, 1)
' a b  c '.rsplit(none, 1)
'a b c'.split(maxsplit=1)
'abc'.split('')
'abc'.split('</think>')[-1]
'x</think>y</think>z'.split('</think>')
multi.splitlines()
multi.splitlines(true)
'a\r\nb\x0bc\u2028d'.splitlines()
'hello'.startswith('he')
'hello'.startswith(('x', 'h'))
'hello'.startswith('l', 2)
'hello'.endswith('lo')
'hello'.endswith(('x', 'o'))
'hello'.startswith(['h'])
'hello'.startswith(1)
'hello'.find('l')
'hello'.find('z')
'hello'.rfind('l')
'hello'.find('l', 3)
'hello'.find('')
uni.find('\u2603')
'hello'.index('l')
'hello'.index('z')
'hello'.count('l')
'hello'.count('')
'aaaa'.count('aa')
'-'.join(words)
'-'.join('abc')
'-'.join([1, 2])
'hello'.replace('l', 'L')
'hello'.replace('l', 'L', 1)
'hello'.replace('', '-')
''.replace('', '-')
'hello'|replace('l', 'L')
'hello'|replace('l', 'L', 1)
123|replace(2, 'x')
'abc'.removeprefix('a')
'abc'.removeprefix('b')
'abc'.removesuffix('c')
'abc'.removesuffix('')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.upper()
'ABC'.lower()
'aBc'.swapcase()
'abc'.capitalize()
'abc'.center(7, '*')
'abc'.center(8, '*')
'ab'.center(5, '*')
'abc'.ljust(5) ~ '|'
'abc'.rjust(5, '.')
'42'.zfill(5)
'-42'.zfill(5)
'abc'.isalpha()
'abc1'.isalpha()
'12'.isdigit()
''.isdigit()
' \t'.isspace()
'a1'.isalnum()
'ABC'.isupper()
'abc'.islower()
'1'.isupper()
'abc'.isascii()
'a\tb'.expandtabs(4)
'{} and {}'.format(1, 'b')
'{0}{1}{0}'.format('a', 'b')
'{a}-{b}'.format(a=1, b=2)
'{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c')
'{:05d}'.format(42)
'{:.2f}'.format(3.14159)
'{:,}'.format(1234567)
'{:+d}'.format(5)
'{:x}'.format(255)
'{:%}'.format(0.25)
'{!r}'.format('a')
'{{}}'.format()
'{}'.format()
'{0[a]}'.format(d)
'{'.format(1)
'abc'.nonsense
'abc'.nonsense()
'%s is %d' % ('a', 5)
'%s' % 'x'
'%s' % [1, 2]
'%5d|%-5d|%05d' % (1, 2, 3)
'%.2f' % 3.14159
'%5.1f|' % 2.25
'%x %X %o %#x' % (255, 255, 8, 255)
'%e %g' % (12345.678, 0.0001)
'%%'  % ()
'%(a)s' % d
'%r' % 'q'
'%c' % 65
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%d' % 'a'
'%s and %s'|format('a', 2)
'%(k)s'|format(k='v')
[1, 2, 3]|join
[1, 2, 3]|join(', ')
users|join(', ', attribute='name')
words|join('\u2603')
[none, true, 1.5]|join('|')
d|join(',')
words|first
words|last
[]|first
[]|last
'abc'|first
'abc'|last
words|reverse|list
'abc'|reverse
words|list
'abc'|list
d|list
nums|sort
nums|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
['b', 'A', 'a', 'B']|sort
users|sort(attribute='age')|map(attribute='name')|join(',')
users|sort(attribute='city,name')|map(attribute='name')|join(',')
[3, 'a']|sort
d|dictsort
d|dictsort(true)
{'a': 2, 'b': 1}|dictsort(by='value')
{'a': 2, 'b': 1}|dictsort(reverse=true)
d|items|list
d|items|first
missing|items|list
5|items|list
d.items()
d.keys()
d.values()
{'a': 1, 'b': 2}.items()
{'a': 1}.items()|list
{'a': 1}.keys()|list
{'a': 1}.get('a')
{'a': 1}.get('b')
{'a': 1}.get('b', 7)
{'a': 1}.get('b') is none
d.update({'z': 1})
d.pop('a')
d.clear
d.setdefault is defined
words.append('x')
words.append is defined
words.sort()
words.index('Banana')
words.index('zzz')
words.count('apple')
(1, 2, 1).count(1)
name.__class__
name.__class__ is defined
''.__class__.__mro__
words|map('upper')|list
words|map('upper')|join(' ')
words|map('length')|list
words|map('replace', 'a', '4')|list
users|map(attribute='name')|list
users|map(attribute='tags.0')|list
users|map(attribute='tags.0', default='-')|list
users|map(attribute='nope', default='-')|list
nums|map('string')|list
words|map|list
none|map('upper')|list
none|map(attribute='a')|list
none|selectattr('a', 'equalto', 1)|list
0|select|list
false|rejectattr('a')|list
words|map('nofilter')|list
nums|select('odd')|list
nums|select('greaterthan', 1)|list
nums|select('>', 1)|list
nums|reject('odd')|list
[0, 1, '', 'a', none]|select|list
[0, 1, '', 'a', none]|reject|list
users|selectattr('age', 'equalto', 36)|map(attribute='name')|list
users|selectattr('age', '==', 41)|list|length
users|selectattr('tags')|map(attribute='name')|list
users|rejectattr('tags')|map(attribute='name')|list
users|selectattr('nope', 'defined')|list
users|rejectattr('nope', 'defined')|list|length
users|selectattr('name', 'in', ['Ada', 'Cid'])|map(attribute='name')|list
(users|selectattr('age', 'gt', 100)) is iterable
true if users|selectattr('age', 'gt', 100) else false
(nums|map('string'))|length
(nums|map('string'))[0] is undefined
users|groupby('age')|map('first')|list
users|groupby('city')|map(attribute='grouper')|list
users|groupby('city')|map(attribute='list')|map('length')|list
users|groupby('city', case_sensitive=true)|map('first')|list
users|groupby('nope', default='z')|map('first')|list
[1, 2, 3, 4, 5]|batch(2)|list
[1, 2, 3, 4, 5]|batch(2, 0)|list
[1, 2, 3, 4, 5]|slice(2)|list
[1, 2, 3, 4, 5]|slice(3, 'x')|list
[1, 1.0, true, 2, 'a', 'A']|unique|list
['a', 'A']|unique(case_sensitive=true)|list
users|unique(attribute='age')|map(attribute='name')|list
nums|sum
users|sum(attribute='age')
[]|sum
[1.5, 2]|sum
[[1], [2]]|sum(start=[])
['a']|sum
nums|min
nums|max
words|min
['b', 'A']|max
users|max(attribute='age')
[]|min
[]|min is undefined
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
x is defined
x is number
f is number
f is float
x is float
x is integer
true is integer
true is number
true is boolean
1 is boolean
yes is true
no is false
1 is true
none is none
nil is none
x is none
name is string
words is string
d is mapping
words is mapping
words is iterable
name is iterable
5 is iterable
words is sequence
name is sequence
d is sequence
5 is sequence
d.items() is sequence
(words|map('upper')) is sequence
range(3) is sequence
missing is iterable
name is callable
range is callable
name.upper is callable
3 is odd
4 is even
4 is odd
6 is divisibleby 3
6 is divisibleby(4)
3 is eq 3
3 is equalto(3)
3 is ne 4
3 is gt 2
3 is ge 3
3 is lt 2
3 is le 3
3 is greaterthan 4
3 is in nums
3 is in [1]
7 is not in nums
'abc' is lower
'ABC' is upper
'123' is upper
none is sameas none
x is sameas 5
'upper' is filter
'nope' is filter
'odd' is test
'nope' is test
x is not defined
x is not none
missing is not defined and x is defined
x is defined and x == 5
x is nosuchtest
html is escaped
range(5)
range(1, 5)
range(0, 10, 3)
range(5)|list
range(5, 0, -2)|list
range(0)|list
range(3)[1]
range(3)[5] is undefined
range(5)|length
range(1, 2, 0)
range(100001)|length
range(100000)|length
range(99999999999)|length
range('a')
range()
dict(a=1, b=2)
dict([('a', 1), ['b', 2]])
dict({'a': 1}, b=2)
namespace(a=1).a
namespace({'a': 1}, b=2).b
namespace().zzz is defined
cycler('a', 'b').next()
raise_exception('no: ' ~ x)
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%A %B %H:%M:%S %j %% %-d')
x()
words()
name|nofilter
name|upper()
name|upper(1)
name|replace('a')
name|trim(foo=1)
'a'.upper(1)
words|join(attribute=0)
users|attr('name')
d|attr('a') is defined
[1, 2, 3][1]
{'a': {'b': [1, 2]}}.a.b[1]
{'a': 1}['a']
(1, 2)[0]
'abc'.upper().lower()
'a' ~ 'b' * 2
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ missing
1 is defined == true
not x is defined
(not x) is defined
x is defined or missing.y
1 if x is defined else 2
-1 is odd
-x|abs
2 * 3|string
'a' in 'abc' and 'b' in 'abc'
1 + 1 == 2 and 'yes'
words[x - 4]
words[nums[1]]
{'a': words}['a'][0][0]
0x1F
0b101
0o17
1_000_000
9223372036854775807
9223372036854775807 - 1
4 * 1.0
10 % 3 * 2
8 // 3 / 2
1.5 == 1.50
'a' == 'a' == 'a'
1 == 1 != 2
[1, [2, [3]]]
[[]] == [[]]
[1, 2, 3] | length > 2
words | length * 2
(words | length) * 2
"double" ~ 'single'
'\\n'
'\'' ~ "\""
{'x': 1,}
[1, 2,]
(1, 2,)
{'a b': 1}['a b']
[words, nums] | map('first') | list
users | map(attribute='age') | select('gt', 36) | list
users[0].tags | join('/')
users | selectattr('city', 'equalto', 'Paris') | first
(users | selectattr('city', 'equalto', 'Rome') | first) is undefined
(users | selectattr('city', 'equalto', 'Paris') | list)[0].name
words | select('equalto', 'apple') | first | upper
loop
varargs is defined
1 if 0 else none
'' is none
d.a is defined and d.a > 0
d is mapping and 'a' in d
1 is eq(1) and 2 is eq 2
'%s' % none
'%s %s' % (true, 1.0)
'%d' % 3.99
'%i' % true
'\u00e9' == '\xe9'
"\t|" ~ '\x09'
'{' ~ '}'
'}}'
'%}'
'{{'
'{%'
x|string|length
x | string | list
(x, f) | sum
words | sort | first | upper | list | join('.')
"abc" | batch(2) | map('join') | list
nums | sort | map('string') | join('<')
""" .strip("\n").split("\n")

# Whole templates.
TEMPLATES = [
    "", "plain", "a\n", "a\n\n", "\n", "\na", "a\r\nb\rc\n", "{{ 1 }}\n", "{{ 1 }}\n\n",
    "{% if true %}\na\n{% endif %}\nb\n",
    "  {% if true %}\n  a\n  {% endif %}\n  b",
    "x  {% if true %}\n  a\n  {% endif %}  y\n",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a  {%+ if true +%}\n  b  {%+ endif +%}\n  c",
    "  {%+ if true %}a{% endif %}",
    "a\n  {{- 1 -}}  \n b",
    "a {{ 1 -}} \n\n b",
    "  {{ 1 }}\n  {{ 2 }}\n",
    "{# comment #}\nx", "  {# comment #}\nx", "a {# c #} b", "a {#- c -#} b", "a\n {#+ c +#}\n b",
    "{# multi\nline {{ x }} {% if %} #}y", "{#-#}z", "{# open",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "{%- raw -%}  a {{ b }}  {%- endraw -%}  c",
    "a\n  {% raw %}\n  b\n  {% endraw %}\nc", "{% raw %}open", "{% raw -%}\n\n x{% endraw %}\ny",
    "{% raw %}{% endraw %}", "{%raw%}{#{%endraw%}",
    "{{ '}}' }}{{ \"%}\" }}", "{{ {'a': {'b': 1}}.a.b }}", "{{{'a': 1}.a}}", "{{ {} }}",
    "{{ [1,\n2] }}", "{{\n\n x\n\n}}", "{{x}}{{  x  }}", "{ { x } }", "{", "{{", "{% if", "}}",
    "%}",
    "{{ }}", "{% %}", "{{ x", "{{ x }", "{{ (x }}", "{{ x) }}", "{{ [1, 2 }}", "{{ 'open }}",
    "{{ 1 2 }}", "{{ x y }}", "{{ x. }}", "{{ .x }}", "{{ x..y }}", "{{ | upper }}", "{{ x | }}",
    "{{ x is }}", "{{ not }}", "{{ 1 + }}", "{{ * 2 }}", "{{ x = 1 }}", "{{ a, }}", "{{ f(1, }}",
    "{{ f(a=1, 2) }}", "{{ x ! y }}", "{{ x & y }}", "{{ x ? y : z }}", "{{ $x }}", "{{ @ }}",
    "{{ x is defined is true }}", "{{ {1} }}", "{{ {'a' 1} }}", "{{ x[ }}", "{{ x[] }}",
    # if
    "{% if x > 3 %}big{% elif x > 1 %}mid{% else %}small{% endif %}",
    "{% if x > 30 %}big{% elif x > 1 %}mid{% else %}small{% endif %}",
    "{% if x > 30 %}big{% elif x > 10 %}mid{% else %}small{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}",
    "{% if '' or [] or {} or 0 or none %}a{% else %}b{% endif %}",
    "{% if x %}", "{% endif %}", "{% else %}", "{% if x %}{% endfor %}", "{% if %}a{% endif %}",
    "{% if x %}a{% else %}b{% else %}c{% endif %}", "{% elif x %}",
    "{% if x == 5 %}{% if f == 2.5 %}both{% endif %}{% endif %}",
    "{% if x is defined and x is number and not x is string %}ok{% endif %}",
    "{% if (x, 1) %}t{% endif %}", "{% if x, 1 %}t{% endif %}",
    # for
    "{% for w in words %}{{ loop.index }}:{{ w }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for w in words %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for w in words %}{{ loop.previtem }}<{{ w }}>{{ loop.nextitem }} {% endfor %}",
    "{% for w in words %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for w in words %}{{ loop.cycle('odd', 'even') }} {% endfor %}",
    "{% for u in users %}{% if loop.changed(u.age) %}[{{ u.age }}]{% endif %}{{ u.name }} {% endf"
    "or %}",
    "{% for n in [1, 1, 2] %}{{ loop.changed(n) }}{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}-{{ b }};{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for a, b in [(1,)] %}{{ a }}{% endfor %}",
    "{% for a, b in [1] %}{{ a }}{% endfor %}",
    "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for w in words if 'a' in w %}{{ w }}{{ loop.index }}/{{ loop.length }} {% endfor %}",
    "{% for w in words if w is nosuch %}{% endfor %}",
    "{% for w in [] %}a{% else %}none{% endfor %}",
    "{% for w in words if false %}a{% else %}none{% endfor %}",
    "{% for w in words %}a{% else %}none{% endfor %}",
    "{% for w in missing %}a{% else %}none{% endfor %}",
    "{% for w in 5 %}a{% endfor %}", "{% for w in none %}a{% endfor %}",
    "{% for c in 'h\u00e9y' %}{{ c }}.{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for i in range(3) %}{% for j in range(2) %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ "
    "loop.index }};{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{%"
    " endif %}{{ i }}{% endfor %}",
    "{% for i in range(3) %}{% break %}{% else %}else{% endfor %}",
    "{% for i in range(3) %}{% continue %}{% else %}else{% endfor %}",
    "{% for i in range(3) %}{% if i %}{% break %}{% endif %}{% else %}else{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for i in range(9) if ns.n < 3 %}{{ loop.last }}{% set ns.n ="
    " ns.n + 1 %}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for i in range(9) if ns.n < 3 %}{{ loop.length }}{% set ns.n"
    " = ns.n + 1 %}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for i in range(9) if ns.n < 3 %}{{ loop.nextitem }}{% set ns"
    ".n = ns.n + 1 %}{% endfor %}",
    "{% for i in nums %}{{ loop|length }}{% endfor %}",
    "{% for i in nums %}{{ loop.cycle() }}{% endfor %}",
    "{% break %}", "{% continue %}", "{% macro m() %}{% break %}{% endmacro %}",
    "{% for i in nums %}{% set y = i %}{% endfor %}{{ y }}",
    "{% set y = 0 %}{% for i in nums %}{% set y = y + i %}{{ y }}{% endfor %}{{ y }}",
    "{% set y = 0 %}{% for i in nums %}{{ y }}{% set y = i %}{% endfor %}",
    "{% for x in nums %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in nums %}{% endfor %}{{ loop is defined }}",
    "{% set ns = namespace(t=0) %}{% for i in nums %}{% set ns.t = ns.t + i %}{% endfor %}{{ ns.t"
    " }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a %}{{ ns.a }}{{ ns.b }}{{ ns.c"
    " is defined }}",
    "{% set ns = {} %}{% set ns.a = 1 %}", "{% set missing.a = 1 %}",
    "{% set ns = namespace(a=1) %}{% if true %}{% set ns.a = 2 %}{% endif %}{{ ns.a }}",
    "{% set ns = namespace(found=false) %}{% for u in users if not ns.found %}{{ u.name }}{% set "
    "ns.found = true %}{% endfor %}",
    "{% set ns = namespace(a=1, b='x') %}{{ ns }}",
    "{% for t in tree recursive %}{{ t.n }}{{ loop.depth }}({{ loop(t.kids) }}){% endfor %}",
    "{% for t in nums %}{{ loop(t) }}{% endfor %}",
    "{% for i in nums %}{{ loop }}{% endfor %}",
    "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}",
    "{% for i in (1, 2) if i > 1 %}{{ i }}{% endfor %}",
    "{% for i in nums|sort if i > 1 %}{{ i }}{% endfor %}",
    "{% for i in [1] + [2] %}{{ i }}{% endfor %}",
    "{% for i in nums -%}\n  {{ i }}\n{%- endfor %}", "{% for %}{% endfor %}",
    "{% for x %}{% endfor %}",
    "{% for x.y in nums %}{% endfor %}", "{% for true in nums %}{% endfor %}",
    "{% for 1 in nums %}{% endfor %}",
    "{% for m in messages[1:] %}{% endfor %}ok", "{% for w in words[::-1] %}{{ w }}{% endfor %}",
    "{% for w in words|map('upper') %}{{ w }}{{ loop.last }}{% endfor %}",
    "{% for g in users|groupby('age') %}{{ g.grouper }}:{% for u in g.list %}{{ u.name }}{% endfo"
    "r %};{% endfor %}",
    "{% for a, l in users|groupby('city') %}{{ a }}={{ l|length }};{% endfor %}",
    "{% for row in nums|batch(2, '-') %}{{ row|join(',') }};{% endfor %}",
    "{% set g = nums|map('string') %}{{ g|join }}{{ g|join }}|",
    "{% set g = words|select('string') %}{{ g|first }}{{ g|list }}",
    # set
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set a, b = (1,) %}",
    "{% set a = 1, 2 %}{{ a }}", "{% set a = b = 1 %}", "{% set true = 1 %}", "{% set 'a' = 1 %}",
    "{% set a %}x{{ x }}y{% endset %}[{{ a }}]", "{% set a | upper %}abc{% endset %}{{ a }}",
    "{% set a | replace('b', 'x') | upper %}abc{% endset %}{{ a }}", "{% set a %}open",
    "{% set x = x + 1 %}{{ x }}", "{% if true %}{% set z = 1 %}{% endif %}{{ z }}",
    "{% if false %}{% set z = 1 %}{% endif %}{{ z is defined }}",
    "{% set x = none %}{{ x is none }}",
    "{% set messages = [1] %}{{ messages }}", "{% set a = 1 %}{% set a = a + 1 %}{{ a }}",
    "{% set a = [] %}{% set a = a + [1] %}{% set a = a + [2] %}{{ a }}",
    "{% set (a, b) = [1, 2] %}{{ a }}{{ b }}", "{% set d2 = dict(d, z=1) %}{{ d2.z }}{{ d2.a }}",
    "{% set a = 'x' if false else 'y' %}{{ a }}", "{% set a = x == 5 %}{{ a }}",
    "{% set ns = namespace(x=1) %}{% set a, ns.x = 1, 2 %}{{ a }}{{ ns.x }}",
    # macro, call
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{{ m(1) }}", "{% macro m() %}x{% endmacro %}{{ m(q=1) }}",
    "{% macro m(a) %}x{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=3) }}",
    "{% macro m(a) %}{{ a }}{{ varargs|length }}{% endmacro %}{{ m(1, 2, 3) }}",
    "{% macro m(*a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m %}{% endmacro %}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{% endcall %}",
    "{% macro m() %}<{{ caller(1, 2) }}>{% endmacro %}{% call(a, b) m() %}{{ a }}+{{ b }}{% endca"
    "ll %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}", "{% call 5 %}{% endcall %}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 9 %}{{ m() }}",
    "{% set y = 1 %}{% macro m() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ m() }}",
    "{% macro m() %}{% set y = 1 %}{{ y }}{% endmacro %}{{ m() }}{{ y is defined }}",
    "{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m }}",
    "{% macro m(x) -%}  {{ x }}  {%- endmacro %}[{{ m(1) }}]",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m('a') ~ m('b') | upper }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ words | map('upper') | map('lower') | join }}{{ m(x="
    "1) }}",
    "{% macro m() %}{% for w in words %}{{ loop.index }}{% endfor %}{% endmacro %}{{ m() }}",
    "{% for w in words %}{% macro m() %}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}",
    "{% macro m() %}{{ m.name }}{% endmacro %}{{ m() is string }}",
    # filter, with, generation, print, unsupported
    "{% filter upper %}a{{ name }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}abc{% endfilter %}",
    "{% filter trim %}  a  {% endfilter %}|", "{% filter nofilter %}a{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% with x = 1, y = x %}{{ y }}{% endwith %}", "{% generation %}a{{ x }}{% endgeneration %}b",
    "{% for i in nums %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% generation %}\na\n{% endgeneration %}\nb", "{% generation %}", "{% print 1, 'a' %}",
    "{% do x %}", "{% nosuchtag %}", "{% include 'x' %}", "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}", "{% set q = joiner('|') %}{{ q() }}a{{ q() }}b{{ q() }}c",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{{ raise_exception('stop') }}", "{% if false %}{{ raise_exception('stop') }}{% endif %}ok",
    "{% set f = raise_exception %}{{ f('via') }}",
    "{{ strftime_now is defined }}{{ date_string is defined }}",
    "{{ messages|length }}{{ tools is none }}{{ tools is defined }}{{ documents is defined }}{{ a"
    "dd_generation_prompt }}",
    "{{ bos_token }}|{{ bos_token is defined }}",
    "{{ x }}{{- x }}{{ x -}}{{ x }}", "a{{ x }}\n{{ x }}\n\n{{ x }}",
    "{% if true %}\n\na\n\n{% endif %}", "{%if x%}a{%endif%}", "{%-if x-%} a {%-endif-%}",
    "\t{% if true %}\t\n\ta\n\t{% endif %}", "\u00a0{% if true %}a{% endif %}",
    "a{% if true %}\n{% endif %}\nb", "{% set a = 1 %}\n{% set b = 2 %}\n{{ a }}{{ b }}\n",
    "  {% set a = 1 %}  \n  {{ a }}", "{% for i in nums %}\n{{ i }}\n{% endfor %}\n",
    "{%- for i in nums %}\n    {{- i }}\n{%- endfor %}\n",
    "{{ 'a\nb' }}", "{{ 'tab\there' }}", "{{ x }}{# c #}{{ x }}", "{{ x }} {#- c -#} {{ x }}",
    "{% set s %}\n  a\n{% endset %}[{{ s }}]", "{{ \"a\" if x else \"b\" }}{{ 'c' }}",
    "{{ x|string ~ '\u00e9' }}", "\u00e9{{ x }}\u2603", "{{ caf\u00e9 is defined }}",
    "{% set caf\u00e9 = 1 %}{{ caf\u00e9 }}", "{{ users[0]['name'][0] }}", "{{ users.0.name }}",
    "{{ (words|first)[0]|upper }}", "{% if words|length > 2 and 'apple' in words %}y{% endif %}",
    "{% if messages and messages[0].role == 'system' %}s{% else %}n{% endif %}",
    "{{ messages[0].role }}", "{{ messages[0] is defined }}", "{{ messages[-1].role is defined }}",
    "{% set m = messages[0] if messages else none %}{{ m is none }}",
    "{{ words[0].split('p')[-1].strip() }}", "{{ d.items()|list|first|last }}",
    "{{ {'role': 'user'}.role }}{{ {'content': 'c'}['content'] }}",
    "{%- set out = '' %}{% for w in words %}{% set out = out ~ w %}{% endfor %}[{{ out }}]",
    "{% macro p(v, depth=0) %}{% if v is mapping %}{% for k, e in v|items %}{{ '  ' * depth }}{{ "
    "k }}:"
    "{{ p(e, depth + 1) }}{% endfor %}{% elif v is iterable and v is not string %}{% for e in v %}"
    "{{ p(e, depth + 1) }},{% endfor %}{% else %}{{ v }};{% endif %}{% endmacro %}{{ p(nested) }}",
]

LANGUAGE_CASES = (["{{ " + expression + " }}" for expression in EXPRESSIONS + PRESENTATION]
                  + TEMPLATES)
