/** Splits a file into the texts for people and the code for programs, with the line of each part. */
import { parseSync } from 'rolldown/utils';
import type { Scope } from './patterns.ts';

/** A text of a file. */
export interface TextPart {
  readonly kind: 'comment' | 'title' | 'text' | 'code';
  readonly content: string;
  /** Line of its first character, from 1. */
  readonly line: number;
}

/** Kinds of parts that a pattern of each scope applies to. */
export const kindsOf: Readonly<Record<Scope, readonly TextPart['kind'][]>> = {
  comment: ['comment'],
  prose: ['comment', 'title', 'text'],
  title: ['title'],
  code: ['code'],
  all: ['comment', 'title', 'text', 'code'],
};

/** Titles are the first arguments of `t.test`. */
const title = /(?<=\.test\(\s*)(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/g;
/** Quoted strings and text of JSX elements; a single word is an identifier, not a text. */
const quoted = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|>[^<>{}()=;]+</g;
const isSentence = (text: string): boolean => /[A-Za-z]+,? [A-Za-z]+/.test(text);

/** Replaces each character by a space, except line ends, so line numbers do not change. */
const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

const lineCounter = (source: string): ((offset: number) => number) => {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
};

/** Comments, texts and code of a TypeScript or JavaScript file. */
export function partsOfSource(file: string, source: string): TextPart[] {
  const lineOf = lineCounter(source);
  const parts: TextPart[] = [];
  const code: string[] = [];
  let codeBegin = 0;
  for (const { start, end } of commentsOf(file, source)) {
    const content = source.slice(start, end);
    // Links and quoted code are names, not sentences.
    parts.push({ kind: 'comment', content: content.replace(/`[^`\n]*`/g, blank), line: lineOf(start) });
    code.push(source.slice(codeBegin, start), blank(content));
    codeBegin = end;
  }
  code.push(source.slice(codeBegin));
  const takeOut = (kind: 'title' | 'text') => (found: string, offset: number) => {
    if (!isSentence(found)) return found;
    parts.push({ kind, content: found, line: lineOf(offset) });
    return blank(found);
  };
  const rest = code.join('').replace(title, takeOut('title')).replace(quoted, takeOut('text'));
  parts.push({ kind: 'code', content: rest, line: 1 });
  return parts;
}

function commentsOf(file: string, source: string): readonly { readonly start: number; readonly end: number }[] {
  const { comments } = parseSync(file, source);
  return mergeLines(source, comments);
}

/** Joins `//` comments on consecutive lines: a sentence may span them. */
function mergeLines(source: string, comments: readonly { readonly start: number; readonly end: number }[]) {
  const merged: { start: number; end: number }[] = [];
  for (const { start, end } of comments) {
    const last = merged.at(-1);
    const isNext = last !== undefined && source.startsWith('//', last.start) && source.startsWith('//', start);
    if (last && isNext && /^\n[ \t]*$/.test(source.slice(last.end, start))) last.end = end;
    else merged.push({ start, end });
  }
  return merged;
}

/** Sentences of a Markdown file, without code. */
export function partsOfDocument(source: string): TextPart[] {
  const content = source
    .replace(/^(```+|~~~+)[^\n]*\n[\s\S]*?^\1/gm, blank)
    .replace(/`[^`\n]*`/g, blank)
    .replace(/\]\([^)\n]*\)/g, blank);
  return [{ kind: 'text', content, line: 1 }];
}

/** The first sentence of a comment begins after its marks. */
export const withoutMarks = (comment: string): string =>
  comment.replace(/^\/(?:\*+|\/)[ \t]*\n?[ \t]*(?:\*[ \t]*)?/, '');
