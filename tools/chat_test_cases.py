"""Expressions for chat_language_cases.py, one a line: tests, functions, calls that are
wrong, and all of it combined."""

TESTS_AND_CALLS = r"""
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
""".strip("\n").split("\n")

# Several things at once, and which binds first.
COMBINED = r"""
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
""".strip("\n").split("\n")
