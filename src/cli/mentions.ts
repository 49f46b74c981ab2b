import { statSync } from 'node:fs';
import { basename, relative, resolve, sep } from 'node:path';
import type { InputPart } from '../protocol/index.ts';

/** `@path` or `@"path with blanks"` at the beginning of a word; the path does not include punctuation at its end. */
const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"]*[^\s".,;:!?)]))/g;
const imageName = /\.(png|jpe?g|gif|webp)$/i;

/** Paths of images as terminals type them when a file is dropped or pasted: absolute, in quotes or with backslashes before blanks. */
const dropped =
  /(?<=^|\s)(?:'(\/[^'\n]+)'|"(\/[^"\n]+)"|(\/(?:\\.|[^\s\\'"])+?\.(?:png|jpe?g|gif|webp)))(?=$|[\s.,;:!?)])/gi;
const commandLine = /^\/[A-Za-z0-9][\w-]*(?::[\w.-]+)?(?:\s|$)/;

/**
 * Parts of a prompt: files of the workspace that it mentions become references, images become parts of the message. Everything else
 * stays text, also a mention without a file of this name. A prompt command takes its words unchanged.
 *
 * @param workspacePath absolute
 * @param isTyped a person has typed it at a terminal: images anywhere that were dropped into it become parts, too
 */
export function partsOf(prompt: string, workspacePath: string, isTyped = false): InputPart[] {
  if (commandLine.test(prompt)) return [{ type: 'text', text: prompt }];
  const parts = split(prompt, mention, ([, quoted, plain = '']) => referenceTo(quoted ?? plain, workspacePath));
  if (!isTyped) return parts;
  return parts.flatMap((part) =>
    part.type === 'text'
      ? split(part.text, dropped, ([, single, double, plain = '']) =>
          droppedImage(single ?? double ?? plain.replace(/\\(.)/g, '$1')),
        )
      : [part],
  );
}

/** Replaces matches in a text by parts. @param partOf part of a match; undefined: the match stays text */
function split(text: string, pattern: RegExp, partOf: (match: RegExpExecArray) => InputPart | undefined): InputPart[] {
  const parts: InputPart[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    const part = partOf(match);
    if (!part) continue;
    if (match.index > at) parts.push({ type: 'text', text: text.slice(at, match.index) });
    parts.push(part);
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ type: 'text', text: text.slice(at) });
  return parts;
}

function droppedImage(path: string): InputPart | undefined {
  const isImage = imageName.test(path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  return isImage ? { type: 'localImage', path, fileName: basename(path) } : undefined;
}

/** Reference to a file or directory of the workspace; undefined: the workspace has none of this name. */
function referenceTo(name: string, workspacePath: string): InputPart | undefined {
  const path = resolve(workspacePath, name);
  const shown = relative(workspacePath, path);
  if (shown === '' || shown === '..' || shown.startsWith(`..${sep}`)) return undefined;
  const found = statSync(path, { throwIfNoEntry: false });
  // A slash at the end names a directory, as everywhere.
  if (!found || (name.endsWith('/') && !found.isDirectory())) return undefined;
  return found.isFile() && imageName.test(name)
    ? { type: 'localImage', path, fileName: shown }
    : { type: 'fileRef', path, displayPath: shown };
}
