// The filters, by kind; filter_table.cpp names them. A filter takes its input and arguments as
// jinja2's does and fails where that would.
#pragma once

#include "chat/jinja/runtime.h"

namespace godwit::chat::jinja::filters {

using Function = Value (*)(Runtime&, const Value&, const Arguments&);

// Texts and numbers: text_filters.cpp.
Value capitalize(Runtime&, const Value&, const Arguments&);
Value center(Runtime&, const Value&, const Arguments&);
Value escape(Runtime&, const Value&, const Arguments&);
Value forceescape(Runtime&, const Value&, const Arguments&);
Value format(Runtime&, const Value&, const Arguments&);
Value indent(Runtime&, const Value&, const Arguments&);
Value lower(Runtime&, const Value&, const Arguments&);
Value replace_filter(Runtime&, const Value&, const Arguments&);
Value safe(Runtime&, const Value&, const Arguments&);
Value string(Runtime&, const Value&, const Arguments&);
Value title(Runtime&, const Value&, const Arguments&);
Value tojson(Runtime&, const Value&, const Arguments&);
Value trim(Runtime&, const Value&, const Arguments&);
Value truncate(Runtime&, const Value&, const Arguments&);
Value upper(Runtime&, const Value&, const Arguments&);
Value wordcount(Runtime&, const Value&, const Arguments&);

// A file each: wordwrap.cpp, pretty_print.cpp, urlize.cpp.
Value wordwrap(Runtime&, const Value&, const Arguments&);
Value pprint(Runtime&, const Value&, const Arguments&);
Value urlize(Runtime&, const Value&, const Arguments&);

// XML, HTML and URLs: markup_filters.cpp.
Value striptags(Runtime&, const Value&, const Arguments&);
Value urlencode(Runtime&, const Value&, const Arguments&);
Value xmlattr(Runtime&, const Value&, const Arguments&);

// Numbers: number_filters.cpp.
Value absolute(Runtime&, const Value&, const Arguments&);
Value filesizeformat(Runtime&, const Value&, const Arguments&);
Value to_float(Runtime&, const Value&, const Arguments&);
Value to_int(Runtime&, const Value&, const Arguments&);
Value round(Runtime&, const Value&, const Arguments&);

// Anything that can be iterated: sequence_filters.cpp.
Value batch(Runtime&, const Value&, const Arguments&);
Value first(Runtime&, const Value&, const Arguments&);
Value items(Runtime&, const Value&, const Arguments&);
Value join_filter(Runtime&, const Value&, const Arguments&);
Value last(Runtime&, const Value&, const Arguments&);
Value length_filter(Runtime&, const Value&, const Arguments&);
Value list(Runtime&, const Value&, const Arguments&);
Value map(Runtime&, const Value&, const Arguments&);
Value random(Runtime&, const Value&, const Arguments&);
Value reject(Runtime&, const Value&, const Arguments&);
Value rejectattr(Runtime&, const Value&, const Arguments&);
Value reverse(Runtime&, const Value&, const Arguments&);
Value select(Runtime&, const Value&, const Arguments&);
Value selectattr(Runtime&, const Value&, const Arguments&);
Value slice_filter(Runtime&, const Value&, const Arguments&);
Value sum(Runtime&, const Value&, const Arguments&);

// Ordering and grouping: sorting_filters.cpp.
Value dictsort(Runtime&, const Value&, const Arguments&);
Value groupby(Runtime&, const Value&, const Arguments&);
Value max(Runtime&, const Value&, const Arguments&);
Value min(Runtime&, const Value&, const Arguments&);
Value sort(Runtime&, const Value&, const Arguments&);
Value unique(Runtime&, const Value&, const Arguments&);

}  // namespace godwit::chat::jinja::filters
