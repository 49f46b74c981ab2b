import { useSignal } from '@preact/signals';
import { type Chip, FilterBar, type Pill } from '../../../parts/filter-bar.tsx';
import { amount } from '../words.ts';
import { hasTerm, parseFilter, spellFilter, spellTerm, type Term, toggleTerm } from './filter.ts';
import { Legend } from './kinds.tsx';
import { type Trace, type TraceView, traceViews } from './store.ts';

const viewWords: Readonly<Record<TraceView, string>> = { waterfall: 'Waterfall', log: 'Log', list: 'List' };

const usual: readonly (readonly [label: string, term: Term])[] = [
  ['Failures', { name: 'is', value: 'failed', isExcluded: false }],
  ['Tools', { name: 'type', value: 'tool', isExcluded: false }],
  ['Answers', { name: 'type', value: 'response', isExcluded: false }],
  ['Slow', { name: 'dur', isLonger: true, ms: 2_000, value: '>2s', isExcluded: false }],
];

/** Choice of the layout and of the filter. */
export function Toolbar({ trace, box }: { readonly trace: Trace; readonly box: { current: HTMLInputElement | null } }) {
  const draft = useSignal('');
  const fault = useSignal<string | undefined>(undefined);
  const { terms, fault: given } = trace.filter.value;
  const chips: Chip[] = terms.map((term, index) => ({
    key: `${index} ${spellTerm(term)}`,
    label: spellTerm(term),
    remove: () => {
      trace.filterText.value = spellFilter(terms.filter((each) => each !== term));
    },
  }));
  const pills: Pill[] = usual.map(([label, term]) => ({
    key: label,
    label,
    title: spellTerm(term),
    isOn: hasTerm(terms, term),
    toggle: () => {
      trace.filterText.value = toggleTerm(trace.filterText.peek(), term);
    },
  }));
  const commit = () => {
    const typed = parseFilter(draft.peek());
    fault.value = typed.fault;
    if (typed.fault !== undefined) return;
    trace.filterText.value = spellFilter([...terms, ...typed.terms]);
    draft.value = '';
  };
  return (
    <div class="strip toolbar">
      <fieldset class="switch">
        <legend class="unseen">View</legend>
        {traceViews.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={trace.view.value === name}
            onClick={() => {
              trace.view.value = name;
            }}
          >
            {viewWords[name]}
          </button>
        ))}
      </fieldset>
      <FilterBar
        label="Filter this trace"
        placeholder='type:tool.failed tool:Exec dur>2s "text"'
        text={draft.value}
        onText={(text) => {
          draft.value = text;
          fault.value = undefined;
        }}
        onCommit={commit}
        chips={chips}
        pills={pills}
        fault={fault.value ?? given}
        summary={terms.length > 0 ? matchWords(trace) : undefined}
        box={box}
      >
        {terms.length > 0 && (
          <button
            type="button"
            class="pill-button"
            aria-pressed={trace.isDimmed.value}
            title="Show events that do not match, too, only fainter"
            onClick={() => {
              trace.isDimmed.value = !trace.isDimmed.peek();
            }}
          >
            Dim others
          </button>
        )}
      </FilterBar>
      {trace.view.value === 'waterfall' && <Legend />}
    </div>
  );
}

function matchWords(trace: Trace): string {
  const count = trace.view.value === 'list' ? trace.entries.value.matchCount : trace.spans.value.matchCount;
  return `${amount(count)} match${trace.search.isSearching.value ? ', looking…' : ''}`;
}
