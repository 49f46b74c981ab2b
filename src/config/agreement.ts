/** Records the parts of a user's agreement as hashes, so that a later question names the changes. No content is stored. */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import * as v from 'valibot';
import { changedFiles, type NamedFiles } from './named-files.ts';

export const Agreement = v.object({
  settings: v.array(v.object({ path: v.string(), hash: v.string() })),
  /** `lines`: hashes of the lines without a separator; null for a file that is not a short text. */
  files: v.array(v.object({ path: v.string(), hash: v.string(), lines: v.nullable(v.string()) })),
});
export type Agreement = v.InferOutput<typeof Agreement>;

/** Difference of a file from the one that the user agreed to. */
export interface ChangedFile {
  readonly path: string;
  readonly state: 'new' | 'changed' | 'removed';
  /** Lines that the user has not agreed to, blank ones left out; null when the lines of the earlier file are unknown. */
  readonly newLines: readonly { readonly number: number; readonly text: string }[] | null;
}

export interface AgreementChanges {
  /** Paths of new and changed settings. */
  readonly settings: readonly string[];
  readonly files: readonly ChangedFile[];
}

const maxFileBytes = 65_536;
/** Lines of one agreement: all agreements share one file of limited size. */
const maxLines = 2_000;
/** Characters of a line's hash: 96 bits, so that no line is written to look like another one. */
const hashLength = 16;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url');
const lineHash = (line: string): string => hashOf(line).slice(0, hashLength);

/** @returns undefined for a file that is missing, long, or not UTF-8 */
function linesOf(path: string): string[] | undefined {
  try {
    const stats = statSync(path);
    if (!stats.isFile() || stats.size > maxFileBytes) return undefined;
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).split(/\r?\n/);
  } catch {
    return undefined;
  }
}

/** @param settings sensitive settings, by path */
export function agreementTo(root: string, settings: ReadonlyMap<string, string>, files: NamedFiles): Agreement {
  let left = maxLines;
  const recorded = [...files].map(([path, hash]) => {
    const lines = linesOf(resolve(root, path));
    if (lines === undefined || lines.length > left) return { path, hash, lines: null };
    left -= lines.length;
    return { path, hash, lines: lines.map(lineHash).join('') };
  });
  return { settings: [...settings].map(([path, value]) => ({ path, hash: hashOf(value) })), files: recorded };
}

/** Compares the present settings and files with those of an agreement. Parameters are those of `agreementTo`. */
export function changesSince(
  agreement: Agreement,
  root: string,
  settings: ReadonlyMap<string, string>,
  files: NamedFiles,
): AgreementChanges {
  const agreed = new Map(agreement.settings.map(({ path, hash }) => [path, hash]));
  const before = new Map(agreement.files.map((file) => [file.path, file]));
  const hashes = new Map(agreement.files.map(({ path, hash }) => [path, hash]));
  return {
    settings: [...settings].filter(([path, value]) => agreed.get(path) !== hashOf(value)).map(([path]) => path),
    files: changedFiles(hashes, files).map((path) => {
      const earlier = before.get(path);
      if (!files.has(path)) return { path, state: 'removed', newLines: null };
      return {
        path,
        state: earlier === undefined ? 'new' : 'changed',
        newLines: newLines(resolve(root, path), earlier?.lines ?? null),
      };
    }),
  };
}

function newLines(path: string, earlier: string | null): ChangedFile['newLines'] {
  const lines = earlier === null ? undefined : linesOf(path);
  if (earlier === null || lines === undefined) return null;
  const known = new Set(earlier.match(new RegExp(`.{${hashLength}}`, 'g')));
  return lines.flatMap((text, index) =>
    text.trim() === '' || known.has(lineHash(text)) ? [] : [{ number: index + 1, text }],
  );
}
