import { statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import type { InputPart } from '../protocol/index.ts';

/** `@path` or `@"path with blanks"` at the beginning of a word; what ends a sentence is no part of the path. */
const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"]*[^\s".,;:!?)]))/g;
const imageName = /\.(png|jpe?g|gif|webp)$/i;

/**
 * Parts of a prompt: files of the workspace that it mentions become references, images become parts of the message. Everything else
 * stays text, also a mention of something that is no file there. A prompt command takes its words as they are.
 *
 * @param workspacePath absolute
 */
export function partsOf(prompt: string, workspacePath: string): InputPart[] {
  if (prompt.startsWith('/')) return [{ type: 'text', text: prompt }];
  const parts: InputPart[] = [];
  let at = 0;
  for (const { 0: whole, 1: quoted, 2: plain = '', index } of prompt.matchAll(mention)) {
    const reference = referenceTo(quoted ?? plain, workspacePath);
    if (!reference) continue;
    if (index > at) parts.push({ type: 'text', text: prompt.slice(at, index) });
    parts.push(reference);
    at = index + whole.length;
  }
  if (at < prompt.length) parts.push({ type: 'text', text: prompt.slice(at) });
  return parts;
}

/** Reference to a file or directory of the workspace; undefined: the workspace has none of this name. */
function referenceTo(name: string, workspacePath: string): InputPart | undefined {
  const path = resolve(workspacePath, name);
  const shown = relative(workspacePath, path);
  if (shown === '' || shown === '..' || shown.startsWith(`..${sep}`)) return undefined;
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return undefined;
  return found.isFile() && imageName.test(name)
    ? { type: 'localImage', path, fileName: shown }
    : { type: 'fileRef', path, displayPath: shown };
}
