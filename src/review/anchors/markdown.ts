import { type MarkdownPart, proseParts } from './code-spans.ts';

interface Fence {
  readonly mark: string;
  /** Column where the content of its list item begins: a line that is not indented so far ends the item, and the fence. */
  readonly offset: number;
}

interface Blocks {
  fence: Fence | undefined;
  /** Open list items, by the columns where their content begins. */
  items: number[];
  /** Whether `items` holds all open list items. */
  isSure: boolean;
  /** Whether no paragraph can continue on this line: a paragraph takes in lines that are not indented like its item. */
  isFresh: boolean;
}

/** An info string behind back-ticks has no back-ticks in it. */
const fenceStart = /^([ \t]*)(`{3,}(?=[^`]*$)|~{3,})(.*)$/s;
const listItem = /^( *)(?:[-+*]|(\d{1,9})[.)])( {1,4})(?=\S)/;
const thematicBreak = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const container = /^(?:[-+*>]|\d{1,9}[.)])(?:\s|$)|^>/;
/** Kinds of code block that GitHub does not show as text: a suggestion can be applied, the others run or fetch something. */
const activeInfo = /^\s*(?:suggestion|mermaid|geojson|topojson|stl|math)\b.*/is;

/**
 * Splits a Markdown text into code and prose (CommonMark, sections 4.5, 5.2 and 6.1). Every part that is not surely code is prose,
 * so that nothing is overlooked that GitHub acts on. The joined parts equal the text, except for fences: an unclosed fence is
 * closed. A fence in an ambiguous place becomes text, and so does a fence that would be more than text, such as an unchecked
 * suggestion.
 */
export function markdownParts(text: string): MarkdownPart[] {
  const parts: MarkdownPart[] = [];
  const blocks: Blocks = { fence: undefined, items: [], isSure: true, isFresh: true };
  let prose: string[] = [];
  const lines = text.split('\n');
  for (const [index, line] of lines.entries()) {
    const end = index < lines.length - 1 ? '\n' : '';
    const read = readLine(blocks, line);
    if (!read.isCode) prose.push(read.text + end);
    else {
      parts.push(...proseParts(prose), { isCode: true, text: read.text + end });
      prose = [];
    }
  }
  parts.push(...proseParts(prose));
  if (blocks.fence) parts.push({ isCode: true, text: `\n${' '.repeat(blocks.fence.offset)}${blocks.fence.mark}` });
  return merged(parts);
}

/** Closes the last fence of a text, so that text put behind it is not taken for code. */
export const closeFences = (text: string): string =>
  markdownParts(text)
    .map((part) => part.text)
    .join('');

function readLine(blocks: Blocks, line: string): MarkdownPart {
  const isBlank = /^[ \t]*$/.test(line);
  if (blocks.fence && (isBlank || indentOf(line) >= blocks.fence.offset)) {
    if (closes(line, blocks.fence)) blocks.fence = undefined;
    blocks.isFresh = true;
    return { isCode: true, text: line };
  }
  blocks.fence = undefined;
  if (isBlank) {
    blocks.isFresh = true;
    return { isCode: false, text: line };
  }
  const fence = fenceStart.exec(line);
  const read = fence ? readFence(blocks, fence, '') : readProse(blocks, line);
  blocks.isFresh = read.isCode;
  return read;
}

function readFence(
  blocks: Blocks,
  [line, indent = '', mark = '', info = '']: RegExpExecArray,
  before: string,
): MarkdownPart {
  const column = before.length + indent.length;
  // Content of an item begins at the third column at the earliest: a line that begins before it ends all items.
  if (column < 2) Object.assign(blocks, { items: [], isSure: true });
  blocks.items = blocks.items.filter((offset) => offset <= column);
  const offset = blocks.items.at(-1) ?? 0;
  if (!blocks.isSure || indent.includes('\t')) return { isCode: false, text: `${before}${indent}\\${mark}${info}` };
  // A deeper indentation is code, or continues a paragraph.
  if (column - offset > 3) return { isCode: false, text: before + line };
  blocks.fence = { mark, offset };
  return { isCode: true, text: before + indent + mark + info.replace(activeInfo, 'text') };
}

function readProse(blocks: Blocks, line: string): MarkdownPart {
  const indent = indentOf(line);
  const open = blocks.items.filter((offset) => offset <= indent);
  const item = thematicBreak.test(line) ? null : listItem.exec(line);
  const isOver = open.length < blocks.items.length;
  if (!item) {
    if (blocks.isFresh && indent < 2) blocks.isSure = true;
    else if (isOver && !blocks.isFresh) blocks.isSure = false;
    blocks.items = open;
    // An item without text on its first line may have content in the next one.
    if (container.test(line.trimStart()) && !line.trimStart().startsWith('>')) blocks.isSure = false;
    return { isCode: false, text: line };
  }
  const [before, , number] = item;
  const rest = line.slice(before.length);
  const interrupts = number === undefined || Number(number) === 1 || blocks.isFresh || isOver;
  if (indent < 2 && interrupts) blocks.isSure = true;
  if (!interrupts || indent - (open.at(-1) ?? 0) > 3 || container.test(rest)) blocks.isSure = false;
  blocks.items = [...open, before.length];
  const fence = fenceStart.exec(rest);
  return fence ? readFence(blocks, fence, before) : { isCode: false, text: line };
}

/** Indentation in columns: a tab reaches to the next multiple of four (CommonMark, section 2.2). */
function indentOf(line: string): number {
  let column = 0;
  for (const char of line) {
    if (char === '\t') column += 4 - (column % 4);
    else if (char === ' ') column += 1;
    else break;
  }
  return column;
}

function closes(line: string, { mark, offset }: Fence): boolean {
  const [, run = ''] = /^[ \t]*(`+|~+)[ \t]*$/.exec(line) ?? [];
  return run.startsWith(mark) && indentOf(line) - offset <= 3;
}

/** Neighbours of a kind become one: a pattern in prose may span several lines. */
function merged(parts: readonly MarkdownPart[]): MarkdownPart[] {
  const groups: { isCode: boolean; texts: string[] }[] = [];
  for (const { isCode, text } of parts) {
    const last = groups.at(-1);
    if (last?.isCode === isCode) last.texts.push(text);
    else groups.push({ isCode, texts: [text] });
  }
  return groups.map(({ isCode, texts }) => ({ isCode, text: texts.join('') }));
}
