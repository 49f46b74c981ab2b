import * as v from 'valibot';
import { childEnvironment, markerVariable } from '../../../supervise/index.ts';
import { runForLines, StartError } from './run-for-lines.ts';
import { type GrepQuery, type SearchEnd, type SearchEngine, SearchError, type SearchScope } from './search.ts';

/** The binary cannot be started here. */
export class RipgrepUnavailableError extends Error {
  override readonly name = 'RipgrepUnavailableError';
}

/** A longer line of output is a match in a line too long to show. */
const maxOutputLineBytes = 1_048_576;
const maxErrorChars = 4_000;

/** Neither the user's settings nor those above the workspace's repository decide the results. */
const always = [
  '--no-config',
  '--hidden',
  '--no-messages',
  '--no-require-git',
  '--no-ignore-dot',
  '--no-ignore-global',
];

/** `@vscode/ripgrep` carries the binary. Loaded when the first search needs it. */
export async function findRipgrep(): Promise<string> {
  try {
    return (await import('@vscode/ripgrep')).rgPath;
  } catch (error) {
    throw new RipgrepUnavailableError('there is no ripgrep for this platform', { cause: error });
  }
}

/** Searches with ripgrep, whose regular expressions take linear time. @throws RipgrepUnavailableError from every method */
export function createRipgrepEngine(findBinary: () => Promise<string> = findRipgrep): SearchEngine {
  return {
    async grepTree(scope, query) {
      const size = ['--max-filesize', String(scope.maxFileBytes)];
      const args = [...always, ...exclusions(scope), ...size, ...narrowing(query), ...grepArguments(query), './'];
      return run(await findBinary(), args, scope, jsonReader(query));
    },
    async grepFile(file, scope, query) {
      const args = [...always, ...grepArguments(query), '-'];
      return run(await findBinary(), args, { ...scope, stdin: file.handle.fd }, jsonReader(query));
    },
    async findFiles(scope, test, max) {
      const paths: string[] = [];
      let total = 0;
      const args = [...always, ...exclusions(scope), '--files', '--null', '--sortr', 'modified', './'];
      const names = { ...scope, endsAtNul: true };
      const end = await run(await findBinary(), args, names, (line) => {
        const path = withoutDot(line);
        if (!test(path)) return true;
        total += 1;
        if (paths.length < max) paths.push(path);
        return true;
      });
      return { paths, total, end };
    },
  };
}

function grepArguments({ pattern, ignoreCase, multiline, context, maxPerFile }: GrepQuery): string[] {
  return [
    '--json',
    '--crlf',
    '--max-count',
    String(maxPerFile),
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(multiline ? ['--multiline'] : []),
    ...(context > 0 ? ['--context', String(context)] : []),
    '--regexp',
    pattern,
    '--',
  ];
}

/** Globs that only exclude: one that included would override `.gitignore`. */
function exclusions({ skippedNames, skippedPaths }: SearchScope): string[] {
  return [
    ...skippedNames.flatMap((name) => ['--iglob', `!**/${escapeGlob(name)}`]),
    ...skippedPaths.flatMap((path) => ['--glob', `!/${escapeGlob(path)}`]),
  ];
}

/** Types choose files without overriding `.gitignore`. */
function narrowing({ nameGlobs }: GrepQuery): string[] {
  if (!nameGlobs) return [];
  return [...nameGlobs.flatMap((glob) => ['--type-add', `wanted:${glob}`]), '--type', 'wanted'];
}

const escapeGlob = (path: string): string => path.replaceAll(/[*?[\]{}\\]/g, (char) => `[${char}]`);

function withoutDot(path: string): string {
  const relative = path.replace(/^\.[\\/]/, '');
  return process.platform === 'win32' ? relative.replaceAll('\\', '/') : relative;
}

/** ripgrep sends bytes that are not UTF-8 as base64. */
const Text = v.union([
  v.pipe(
    v.object({ text: v.string() }),
    v.transform(({ text }) => text),
  ),
  v.pipe(
    v.object({ bytes: v.string() }),
    v.transform(({ bytes }) => Buffer.from(bytes, 'base64').toString('utf8')),
  ),
]);

/** https://docs.rs/grep-printer: JSON Lines. */
const Message = v.variant('type', [
  v.object({
    type: v.picklist(['match', 'context']),
    data: v.object({
      path: Text,
      lines: Text,
      line_number: v.number(),
      submatches: v.array(v.object({ start: v.number() })),
    }),
  }),
  v.object({ type: v.literal('begin') }),
  v.object({ type: v.literal('end') }),
  v.object({ type: v.literal('summary') }),
]);

function jsonReader({ include, onMatch }: GrepQuery): (line: string, isCut: boolean) => boolean {
  return (line, isCut) => {
    if (isCut) return onCutMatch(line);
    const message = v.parse(Message, JSON.parse(line));
    if (message.type !== 'match' && message.type !== 'context') return true;
    const { path, lines, line_number, submatches } = message.data;
    const shown = pathOf(path);
    if (shown !== '' && !include(shown)) return true;
    const [text = '', ...further] = lines.replace(/\r?\n$/, '').split(/\r?\n/);
    if (message.type === 'context') return onMatch({ path: shown, line: line_number, text, column: 0, role: 'around' });
    const column = Buffer.from(lines)
      .subarray(0, submatches[0]?.start ?? 0)
      .toString('utf8').length;
    const lineAt = (each: string, index: number) =>
      onMatch({ path: shown, line: line_number + 1 + index, text: each, column: 0, role: 'further' });
    return onMatch({ path: shown, line: line_number, text, column }) && further.every(lineAt);
  };

  /** The end of the message, with the number of the line, was thrown away. */
  function onCutMatch(line: string): boolean {
    const found = /^\{"type":"match","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})/.exec(line)?.[1];
    if (found === undefined) return true;
    const path = pathOf(v.parse(Text, JSON.parse(found)));
    return (path === '' || include(path)) && onMatch({ path, line: 0, text: undefined, column: 0 });
  }
}

const pathOf = (path: string): string => (path === '<stdin>' ? '' : withoutDot(path));

interface RunScope extends Pick<SearchScope, 'signal' | 'timeoutMs'> {
  readonly directory?: SearchScope['directory'];
  readonly endsAtNul?: boolean;
  readonly stdin?: number;
}

/** @throws RipgrepUnavailableError, SearchError */
async function run(
  binary: string,
  args: readonly string[],
  { directory, stdin, endsAtNul, signal, timeoutMs }: RunScope,
  onLine: (line: string, isCut: boolean) => boolean,
): Promise<SearchEnd> {
  const { end, exitCode, errorText } = await runForLines(binary, args, {
    env: childEnvironment(process.env, { add: marker() }),
    maxLineBytes: maxOutputLineBytes,
    maxErrorChars,
    onLine,
    signal,
    timeoutMs,
    ...(directory && { cwd: directory.at() }),
    ...(endsAtNul && { endsAtNul }),
    ...(stdin !== undefined && { stdin }),
  }).catch((cause: unknown) => {
    throw cause instanceof StartError ? new RipgrepUnavailableError('ripgrep cannot be started', { cause }) : cause;
  });
  if (end !== 'complete') return end;
  if (exitCode === null) throw new SearchError('The search was ended from outside.');
  // 2: an error. Files that cannot be read are not worth one, and say nothing (--no-messages).
  if (exitCode === 2 && errorText !== '') throw new SearchError(errorOf(errorText));
  return end;
}

/** The marker by which descendants of this server are found. */
function marker(): Record<string, string> {
  const incarnation = process.env[markerVariable];
  return incarnation === undefined ? {} : { [markerVariable]: incarnation };
}

/** Error of ripgrep without advice about options that the model cannot set. */
function errorOf(text: string): string {
  const [what = text] = text.replace(/^rg: /, '').split(/\n\s*\n/);
  return what.trim().slice(0, maxErrorChars);
}
