/** A part of a Markdown text. Code mentions no user and fetches nothing. */
export interface MarkdownPart {
  readonly isCode: boolean;
  readonly text: string;
}

const isBlank = (line: string): boolean => /^[ \t\n]*$/.test(line);

/** A row of `---` between pipes makes a table, and there a pipe ends any construct before it (GFM, section 4.10). */
const tableRule = /^[\s>*+]*(?:\d{1,9}[.)] [ \t]*)?(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;

/**
 * Splits lines of prose into code spans (CommonMark, section 6.1) and the rest. A span over several lines, or with back-ticks that
 * may have other partners than it seems, is prose, and so is the rest of its paragraph up to the next empty line.
 */
export function proseParts(lines: readonly string[]): MarkdownPart[] {
  const hasTable = lines.some((line) => /[|:]/.test(line) && tableRule.test(line.trimEnd()));
  let isClear = true;
  return lines.flatMap((line) => {
    if (isBlank(line)) isClear = true;
    const spans = isClear ? codeSpans(line, hasTable) : undefined;
    isClear = spans !== undefined;
    return spans ?? [{ isCode: false, text: line }];
  });
}

function codeSpans(line: string, hasTable: boolean): MarkdownPart[] | undefined {
  if (!line.includes('`')) return [{ isCode: false, text: line }];
  // A back-tick behind a backslash is a plain character, unless it is in a span.
  if (line.includes('\\`')) return undefined;
  const runs = [...line.matchAll(/`+/g)].map((match) => ({ ticks: match[0], at: match.index }));
  const partners = partnersOf(runs.map(({ ticks }) => ticks));
  const parts: MarkdownPart[] = [];
  let from = 0;
  for (let index = 0; index < runs.length; index += 1) {
    const open = runs[index];
    const partner = partners[index];
    const close = partner === undefined ? undefined : runs[partner];
    if (!open || partner === undefined || !close) return undefined;
    const before = line.slice(from, open.at);
    from = close.at + close.ticks.length;
    const code = line.slice(open.at, from);
    if (endsInUrl(before) || (hasTable && code.includes('|'))) return undefined;
    parts.push({ isCode: false, text: before }, { isCode: true, text: code });
    index = partner;
  }
  return [...parts, { isCode: false, text: line.slice(from) }];
}

/** For each run, the index of the next one of the same length. */
function partnersOf(runs: readonly string[]): (number | undefined)[] {
  const next = new Map<string, number>();
  const partners: (number | undefined)[] = [];
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const ticks = runs[index] ?? '';
    partners[index] = next.get(ticks);
    next.set(ticks, index);
  }
  return partners;
}

/**
 * Whether a URL may reach a back-tick: a URL ends only at the next space (GFM, section 6.9), past back-ticks, past a `<` that will
 * be spelled out, and past a comment that will be removed from between the URL and the back-tick.
 */
const endsInUrl = (text: string): boolean => /:\/\/|www\.|mailto:|xmpp:|-->/i.test(text.split(/\s/).at(-1) ?? '');
