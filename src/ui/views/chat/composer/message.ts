import type { InputPart } from '../../../../protocol/index.ts';
import type { PromptCommand } from '../data/rpc.ts';

/** Largest message, in characters: a frame of the agent server holds 4 MiB, and a character takes up to three bytes. */
export const maxMessageChars = 1_200_000;

const mention = /(?<=^|\s)@(?:"([^"\n]+)"|([^\s"@][^\s"]*[^\s".,;:!?)]|[^\s"@.]))/g;

/** The parts of a message: a command of the workspace, or text, then the files that it mentions, then pictures. */
export function messageOf(
  text: string,
  pictures: readonly string[],
  commands: readonly PromptCommand[],
): readonly InputPart[] {
  const images = pictures.map((url) => ({ type: 'image', url }) as const);
  const trimmed = text.trim();
  const [, name = '', argsText = ''] = /^\/([\w:.-]+)(?:\s+([\s\S]*))?$/.exec(trimmed) ?? [];
  if (commands.some((command) => command.name === name)) {
    return [{ type: 'commandRef', name, argsText, rawText: trimmed }, ...images];
  }
  return [...(trimmed === '' ? [] : [{ type: 'text', text: trimmed } as const]), ...filesOf(trimmed), ...images];
}

function filesOf(text: string): readonly InputPart[] {
  const paths = [...text.matchAll(mention)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  // A word without a dot or a slash is as often the name of a person as of a file.
  const files = paths.filter((path) => /[./]/.test(path) && !path.includes('..'));
  return [...new Set(files)].map((path) => ({ type: 'fileRef', path, displayPath: path }) as const);
}

/** The text of an input that is given back to the person. */
export const writtenIn = (input: readonly InputPart[]): string =>
  input
    .flatMap((part) => {
      if (part.type === 'text') return [part.text];
      return part.type === 'commandRef' ? [part.rawText ?? `/${part.name} ${part.argsText ?? ''}`] : [];
    })
    .join('\n');

/** Pictures of an input that is given back to the person. */
export const picturesIn = (input: readonly InputPart[]): readonly string[] =>
  input.flatMap((part) => (part.type === 'image' ? [part.url] : []));
