import { longestBackTicks } from '../../lib/index.ts';
import { control, invisible } from './hidden-text.ts';
import { closeFences } from './markdown.ts';

/** Text as a code span, with any back-ticks in it (CommonMark, section 6.1); invisible characters are spelled out. */
export function codeSpan(text: string): string {
  const plain = visible(text).replace(/\s+/g, ' ');
  const mark = '`'.repeat(longestBackTicks(plain) + 1);
  const pad = plain.startsWith('`') || plain.endsWith('`') ? ' ' : '';
  return `${mark}${pad}${plain}${pad}${mark}`;
}

const visible = (text: string): string =>
  text
    .replace(invisible, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
    .replace(control, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

/** Cuts a text to `room` characters: ends with a whole line where one is near, with its fences closed. */
export function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  const end = '\n\n…';
  // Closing a fence takes a few characters more.
  const most = Math.max(0, room - end.length - 100);
  const line = text.lastIndexOf('\n', most);
  const at = line > most / 2 ? line : most - (/[\uD800-\uDBFF]/.test(text[most - 1] ?? '') ? 1 : 0);
  const closed = closeFences(text.slice(0, at));
  return (closed.length + end.length <= room ? closed : '') + end;
}
