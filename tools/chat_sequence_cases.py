"""Expressions for chat_language_cases.py, one a line: the filters and methods of lists
and dicts."""

SEQUENCES = r"""
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
""".strip("\n").split("\n")
