"""Small templates that try the language itself: what they render to, or that they fail, is decided
by jinja2 (make_chat_fixture.py). All see VARIABLES. The cases lie by subject in chat_*_cases.py."""
from chat_operator_cases import OPERATORS
from chat_presentation_cases import PRESENTATION
from chat_sequence_cases import SEQUENCES
from chat_statement_cases import STATEMENTS
from chat_string_cases import STRINGS
from chat_test_cases import COMBINED, TESTS_AND_CALLS
from chat_value_cases import VALUES

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

EXPRESSIONS = OPERATORS + STRINGS + SEQUENCES + VALUES + TESTS_AND_CALLS + COMBINED + PRESENTATION

LANGUAGE_CASES = ["{{ " + expression + " }}" for expression in EXPRESSIONS] + STATEMENTS
