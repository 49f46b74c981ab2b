import { mcpMentionsIn } from '../../../../protocol/browser.ts';
import type { InputPart } from '../../../../protocol/index.ts';
import type { PromptCommand } from '../data/rpc.ts';

/** Largest frame of the agent server, in bytes. */
const maxFrameBytes = 4 * 1_048_576;
/** Bytes of a frame besides the input: method, ids, a mode. */
const reservedBytes = 4_096;

const encoder = new TextEncoder();

/** Why an input does not fit a frame; null when it does. Control characters take six bytes, and Chinese ones three. */
export function excessOf(input: readonly InputPart[]): string | null {
  const bytes = encoder.encode(JSON.stringify(input)).length;
  const limit = maxFrameBytes - reservedBytes;
  if (bytes <= limit) return null;
  const inMiB = (count: number) => `${(count / 1_048_576).toFixed(1)} MiB`;
  return `The message has ${inMiB(bytes)}: at most ${inMiB(limit)} can be sent. Shorten it, or remove a picture.`;
}

const mention = /(?<=^|\s)@(?:"([^"\n]+)"|([^\s"@][^\s"]*[^\s".,;:!?)]|[^\s"@.]))/g;

/** The parts of a message: a command of the workspace, or text, then the files that it mentions, then pictures. */
export function messageOf(
  text: string,
  pictures: readonly string[],
  commands: readonly PromptCommand[],
): readonly InputPart[] {
  const images = pictures.map((url) => ({ type: 'image', url }) as const);
  const trimmed = text.trim();
  // The indentation of the first line is a part of the message.
  const written = text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
  const [, name = '', argsText = ''] = /^\/([\w:.-]+)(?:\s+([\s\S]*))?$/.exec(trimmed) ?? [];
  if (commands.some((command) => command.name === name)) {
    return [{ type: 'commandRef', name, argsText, rawText: trimmed }, ...images];
  }
  return [...(trimmed === '' ? [] : [{ type: 'text', text: written } as const]), ...filesOf(trimmed), ...images];
}

function filesOf(text: string): readonly InputPart[] {
  const paths = [...text.matchAll(mention)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  // A word without a dot or a slash is as often the name of a person as of a file.
  const isFile = (path: string) => /[./]/.test(path) && !path.includes('..') && mcpMentionsIn(`@${path}`).length === 0;
  const files = paths.filter(isFile);
  return [...new Set(files)].map((path) => ({ type: 'fileRef', path, displayPath: path }) as const);
}

/** Pictures of an input that is given back to the person. */
export const picturesIn = (input: readonly InputPart[]): readonly string[] =>
  input.flatMap((part) => (part.type === 'image' ? [part.url] : []));
