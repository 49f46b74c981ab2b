import { withoutBlankEnds } from './edit-lines.ts';

/** Both texts of an edit. */
interface Texts {
  readonly oldText: string;
  readonly newText: string;
}

/** Wrappings that models put around copied text; each is undone only where it is around the old text as a whole. */
const unwrappings: readonly ((texts: Texts) => Texts | undefined)[] = [
  withoutBlankLines,
  withoutFence,
  withoutLineNumbers,
  withLineFeeds,
];

/** Other texts that an edit may mean, likeliest first; the unchanged edit comes before them. */
export function readingsOf(texts: Texts): readonly Texts[] {
  const readings = unwrappings.flatMap((unwrap) => unwrap(texts) ?? []);
  return [texts, ...readings];
}

function withoutBlankLines({ oldText, newText }: Texts): Texts | undefined {
  const lines = oldText.split(/\r?\n/);
  const kept = withoutBlankEnds(lines);
  if (kept.length === 0 || kept.length === lines.length) return undefined;
  return { oldText: kept.join('\n'), newText: withoutBlankEnds(newText.split(/\r?\n/)).join('\n') };
}

const fence = /^\s*```[^\n`]*\n([\s\S]*?)\n?```\s*$/;

function withoutFence({ oldText, newText }: Texts): Texts | undefined {
  const [old, fresh] = [fence.exec(oldText)?.[1], fence.exec(newText)?.[1]];
  return old === undefined || (fresh === undefined && newText.includes('```'))
    ? undefined
    : { oldText: old, newText: fresh ?? newText };
}

/** `12| text`, `12: text`, `12\ttext`, as tools and editors print lines. */
const numbered = /^\s*(\d+)(?:\t|[|:→] ?)(.*)$/;

function withoutLineNumbers({ oldText, newText }: Texts): Texts | undefined {
  const old = consecutive(oldText);
  if (!old) return undefined;
  return { oldText: old, newText: consecutive(newText) ?? newText };
}

/** Text of lines whose numbers count up by one; undefined for any other text. */
function consecutive(text: string): string | undefined {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  const found = lines.map((line) => numbered.exec(line));
  const first = Number(found[0]?.[1]);
  // One number may be part of the text.
  const isCounting = lines.length > 1 && found.every((match, index) => Number(match?.[1]) === first + index);
  return isCounting ? found.map((match) => match?.[2] ?? '').join('\n') : undefined;
}

/** Line feeds written as `\n` in both texts. */
function withLineFeeds({ oldText, newText }: Texts): Texts | undefined {
  if (oldText.includes('\n') || !oldText.includes('\\n')) return undefined;
  if (newText.includes('\n')) return undefined;
  const fed = (text: string) => text.replaceAll('\\n', '\n').replaceAll('\\t', '\t');
  return { oldText: fed(oldText), newText: fed(newText) };
}
