import type { FoundText } from '../../protocol/index.ts';
import { parseColumn, type Rows } from './rows.ts';
import { matchOf } from './words.ts';

/** SQL: text of a message or an answer; null for other items. @param json expression with the item */
export const textOf = (json: string): string => `CASE ${json} ->> 'type'
    WHEN 'agentMessage' THEN ${json} ->> 'text'
    WHEN 'userMessage' THEN (SELECT group_concat(ifnull(value ->> 'text', value ->> 'rawText'), char(10)) FROM json_each(${json}, '$.input'))
  END`;

/** SQL: whether an item is a completed message or answer. @param json expression with the item */
export const isSearchable = (json: string): string =>
  `${json} ->> 'type' IN ('userMessage', 'agentMessage') AND ${json} ->> 'status' = 'completed'`;

/** SQL: join of the items of the turns in `textsDue`. */
export const itemsDue =
  'textsDue JOIN turns ON turns.key = textsDue.turn JOIN items ON items.thread = turns.thread AND items.turn = turns.key';

/** SQL: keys of the items that match a query, first from the index, then from items that are not indexed yet. Takes the query twice. */
export const itemsWith = `SELECT rowid FROM texts WHERE texts MATCH ?
  UNION SELECT items.key FROM ${itemsDue} WHERE ${isSearchable('items.json')} AND hasWords(${textOf('items.json')}, ?)`;

/** Characters of an excerpt before and after the found word. */
const aroundChars = 60;

/** Messages and answers of all conversations that contain these words, newest first. Conversations of sub-agents are left out. */
export function searchTexts(rows: Rows, text: string, limit: number): readonly FoundText[] {
  const match = matchOf(text);
  if (match === null) return [];
  const sql = `SELECT threads.id AS thread, turns.id AS turn, threads.json AS json, ${textOf('items.json')} AS text
    FROM items JOIN turns ON turns.key = items.turn JOIN threads ON threads.key = items.thread
    WHERE items.key IN (${itemsWith}) AND json_extract(threads.json, '$.parentThreadId') IS NULL
    ORDER BY items.key DESC LIMIT ?`;
  const [first = ''] = text.match(/[\p{L}\p{N}]+/u) ?? [];
  return rows.all(sql, match, match, limit).map((row) => {
    const { displayName } = parseColumn<{ displayName?: string }>(row['json'], rows.file);
    return {
      threadId: String(row['thread']),
      turnId: String(row['turn']),
      excerpt: excerptOf(String(row['text']), first),
      ...(displayName !== undefined && { displayName }),
    };
  });
}

/** One line around the first occurrence of a word. */
function excerptOf(text: string, word: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(word.toLowerCase()));
  const from = Math.max(0, at - aroundChars);
  return text
    .slice(from, at + word.length + aroundChars)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
}
