"""Expressions for chat_language_cases.py, one a line: operators, literals, subscripts,
and what is undefined."""

OPERATORS = r"""
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
""".strip("\n").split("\n")
