import { isFailed, type TraceEntry } from './entry.ts';
import { lengthOf, type Span } from './model.ts';

/**
 * One condition: `type:tool.failed`, `tool:Exec`, `turn:turn_002`, `is:failed`, `dur>2s`, `"text"`; with a minus before it
 * the opposite. Conditions of one name are alternatives, different ones hold together; an exclusion always wins.
 */
export type Term =
  | { readonly name: 'type' | 'tool' | 'turn' | 'is' | 'text'; readonly value: string; readonly isExcluded: boolean }
  | {
      readonly name: 'dur';
      readonly isLonger: boolean;
      readonly ms: number;
      readonly value: string;
      readonly isExcluded: boolean;
    };

export interface Filter {
  readonly terms: readonly Term[];
  /** Parts of the text that were not understood, for people. */
  readonly fault: string | undefined;
}

const names: readonly string[] = ['type', 'tool', 'turn', 'is'];
const states: readonly string[] = ['failed', 'running', 'waiting'];
const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Parses typed text, or the text of an address. */
export function parseFilter(text: string): Filter {
  const terms: Term[] = [];
  let fault: string | undefined;
  for (const word of wordsOf(text)) {
    const term = termOf(word);
    if (typeof term === 'string') fault ??= term;
    else terms.push(term);
  }
  return { terms, fault };
}

/** Splits at blanks, except between quotation marks. `\"` is a quotation mark within them. */
const wordsOf = (text: string): string[] => text.match(/-?(?:[\w.]+:)?"(?:\\.|[^"\\])*"?|\S+/g) ?? [];

function termOf(word: string): Term | string {
  const isExcluded = word.startsWith('-') && word.length > 1;
  const body = isExcluded ? word.slice(1) : word;
  const [, name, given] = /^(\w+):(.+)$/s.exec(body) ?? [];
  if (name !== undefined && given !== undefined && names.includes(name)) {
    const value = unquoted(given);
    if (name === 'is' && !states.includes(value)) return `is: takes ${states.join(', ')}, not ${value}.`;
    return { name: name as 'type', value, isExcluded };
  }
  const [, comparison, amount, unit = 'ms'] = /^dur([<>])(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(body) ?? [];
  if (comparison !== undefined) {
    const ms = Number(amount) * (units[unit] ?? 1);
    return { name: 'dur', isLonger: comparison === '>', ms, value: body.slice(3), isExcluded };
  }
  if (/^dur[<>:=]/.test(body)) return `A duration is written dur>2s or dur<500ms, not ${body}.`;
  return { name: 'text', value: unquoted(body), isExcluded };
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  const inner = text.endsWith('"') && text.length > 1 ? text.slice(1, -1) : text.slice(1);
  return inner.replaceAll(/\\(.)/gs, '$1');
}

/** Spells a term for the filter box. `parseFilter` returns the same term. */
export function spellTerm({ name, value, isExcluded }: Term): string {
  const quoted = `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
  const safe = /^[^\s"\\]+$/.test(value) ? value : quoted;
  const body = name === 'text' ? quoted : name === 'dur' ? `dur${value}` : `${name}:${safe}`;
  return isExcluded ? `-${body}` : body;
}

export const spellFilter = (terms: readonly Term[]): string => terms.map(spellTerm).join(' ');

/** Adds a term, or removes it if it is there. */
export function toggleTerm(text: string, term: Term): string {
  const { terms } = parseFilter(text);
  const spelt = spellTerm(term);
  const rest = terms.filter((each) => spellTerm(each) !== spelt);
  return spellFilter(rest.length < terms.length ? rest : [...terms, term]);
}

export const hasTerm = (terms: readonly Term[], term: Term): boolean =>
  terms.some((each) => spellTerm(each) === spellTerm(term));

/** Subject of a filter: an event, or a bar with all of its events. */
interface Subject {
  readonly types: readonly string[];
  readonly tool: string | undefined;
  readonly turnId: string | undefined;
  readonly durationMs: number | undefined;
  readonly state: string;
  readonly texts: readonly string[];
  readonly ids: readonly (number | undefined)[];
}

/** Ids of events in which the server has found a text, by this text in lower case. */
export type TextMatches = ReadonlyMap<string, ReadonlySet<number>>;

export function matchesEntry(terms: readonly Term[], entry: TraceEntry, found: TextMatches): boolean {
  const { type, tool, turnId, durationMs, text, id } = entry;
  const state = isFailed(entry) ? 'failed' : type === 'approval.requested' ? 'waiting' : '';
  return matches(terms, { types: [type], tool, turnId, durationMs, state, texts: [text], ids: [id] }, found);
}

export function matchesSpan(terms: readonly Term[], span: Span, found: TextMatches, now: number): boolean {
  const { tool, turn, text, outcome, id, endId } = span;
  return matches(
    terms,
    {
      types: typesOf(span),
      tool,
      turnId: turn?.turnId ?? (span.kind === 'turn' ? span.label : undefined),
      durationMs: span.kind === 'moment' ? undefined : lengthOf(span, now),
      state: stateOf(span),
      texts: [text, outcome],
      ids: [id, endId],
    },
    found,
  );
}

function stateOf({ state, kind, end }: Span): string {
  if (state === 'failed') return 'failed';
  if (end !== undefined) return '';
  return kind === 'approval' ? 'waiting' : 'running';
}

const endings = { done: 'completed', failed: 'failed', open: undefined } as const;

function typesOf({ kind, state, label, endId }: Span): string[] {
  if (kind === 'moment') return [label];
  if (kind === 'request') return [state === 'failed' ? 'model.failed' : 'tokens.used'];
  if (kind === 'thinking' || kind === 'response') return [kind];
  const begun = kind === 'approval' ? 'approval.requested' : `${kind}.started`;
  const ended = kind === 'turn' || kind === 'approval' ? 'completed' : endings[state];
  return endId === undefined || ended === undefined ? [begun] : [begun, `${kind}.${ended}`];
}

function matches(terms: readonly Term[], subject: Subject, found: TextMatches): boolean {
  const asked = new Set<string>();
  const met = new Set<string>();
  for (const term of terms) {
    const isMet = meets(term, subject, found);
    if (term.isExcluded && isMet) return false;
    if (term.isExcluded) continue;
    // Two texts, or two bounds of a duration, must both hold.
    const group = term.name === 'text' || term.name === 'dur' ? `${term.name} ${term.value}` : term.name;
    asked.add(group);
    if (isMet) met.add(group);
  }
  return asked.size === met.size;
}

function meets(term: Term, subject: Subject, found: TextMatches): boolean {
  switch (term.name) {
    case 'type':
      return subject.types.some((type) => type === term.value || type.startsWith(`${term.value}.`));
    case 'tool':
      return subject.tool?.toLowerCase() === term.value.toLowerCase();
    case 'turn':
      return subject.turnId === term.value;
    case 'is':
      return subject.state === term.value || (term.value === 'running' && subject.state === 'waiting');
    case 'dur': {
      const { durationMs } = subject;
      if (durationMs === undefined) return false;
      return term.isLonger ? durationMs > term.ms : durationMs < term.ms;
    }
    case 'text': {
      const wanted = term.value.toLowerCase();
      const ids = found.get(wanted);
      return (
        subject.texts.some((text) => text.toLowerCase().includes(wanted)) ||
        (subject.tool?.toLowerCase().includes(wanted) ?? false) ||
        (ids !== undefined && subject.ids.some((id) => id !== undefined && ids.has(id)))
      );
    }
  }
}
