"""Expressions for chat_language_cases.py, one a line: the filters and methods of
strings, and formatting."""

STRINGS = r"""
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
""".strip("\n").split("\n")
