/** The sentences that the demo model understands. `docs/providers.md` shows one of each; a test runs them all. */

/** Names of one argument, best first: the tool that is offered decides which of them it knows. */
type Names = readonly [string, ...string[]];
export type Argument = readonly [Names, unknown];

/** One thing to do. */
export type Step =
  | { readonly kind: 'think' | 'say'; readonly text: string }
  | {
      readonly kind: 'call';
      /** Step as the user sees it. */
      readonly title: string;
      readonly tool: string;
      readonly arguments: readonly Argument[];
      /** Written by the user, whole; wins over `arguments`. */
      readonly json?: string;
      /** May run beside its neighbours. */
      readonly isParallel: boolean;
    };

const quotedText = '"(?:[^"\\\\]|\\\\.)*"|`[^`]+`';
const quoted = `(${quotedText})`;
const word = `(${quotedText}|\\S+)`;
/** A path that text follows. */
const target = `(${quotedText}|\\S+?)`;

const path: Names = ['path', 'file_path'];
const content: Names = ['content', 'text'];

interface Form {
  readonly when: RegExp;
  readonly step: (groups: readonly (string | undefined)[], title: string) => Step;
}

const form = (pattern: string, step: Form['step']): Form => ({ when: new RegExp(`^(?:${pattern})$`, 'is'), step });

function call(title: string, tool: string, args: readonly Argument[], isParallel = false): Step {
  return { kind: 'call', title, tool, arguments: args.filter(([, value]) => value !== undefined), isParallel };
}

const write = (title: string, file: string, text: string): Step =>
  call(title, 'WriteFile', [
    [path, file],
    [content, text],
  ]);

/** No tool appends; a shell does. */
const append = (title: string, file: string, text: string): Step =>
  call(title, 'Exec', [[['command'], `printf '%s' ${shellQuoted(text)} >> ${shellQuoted(file)}`]]);

function replace(title: string, [all, from, to, file]: readonly (string | undefined)[]): Step {
  return call(title, 'EditFile', [
    [path, value(file)],
    [['oldText', 'old_string', 'old_text', 'oldString'], value(from)],
    [['newText', 'new_string', 'new_text', 'newString'], value(to)],
    [['replaceAll', 'replace_all'], all === undefined ? undefined : true],
  ]);
}

/** The first that fits counts. */
const forms: readonly Form[] = [
  form(
    `(?:read|cat)\\s+(?:the\\s+file\\s+)?${word}(?:\\s+lines?\\s+(\\d{1,9})(?:\\s*(?:-|to)\\s*(\\d{1,9}))?)?`,
    readStep,
  ),
  form(`(?:list|ls)(?:\\s+(?:the\\s+)?files)?(?:\\s+(?:in|of))?(?:\\s+${word})?`, ([directory], title) =>
    call(title, 'ReadFile', [[path, value(directory ?? '.')]], true),
  ),
  form(`find\\s+(?:files\\s+)?${word}(?:\\s+in\\s+${word})?`, ([pattern, directory], title) =>
    call(
      title,
      'FindFiles',
      [
        [['pattern'], value(pattern)],
        [path, directory && value(directory)],
      ],
      true,
    ),
  ),
  form(`(?:grep|search for)\\s+${word}(?:\\s+in\\s+${word})?`, ([pattern, directory], title) =>
    call(
      title,
      'GrepFiles',
      [
        [['pattern'], value(pattern)],
        [path, directory && value(directory)],
      ],
      true,
    ),
  ),
  form(`write\\s+${quoted}\\s+to\\s+${word}`, ([text, file], title) => write(title, value(file), value(text))),
  form(`(?:write|create)\\s+(?:the\\s+file\\s+)?${target}(?::\\s+|\\s*:?\\s*(?=\`\`\`))(.+)`, ([file, text], title) =>
    write(title, value(file), textOf(text)),
  ),
  form(`append\\s+${quoted}\\s+to\\s+${word}`, ([text, file], title) => append(title, value(file), value(text))),
  form(`append\\s+to\\s+${target}(?::\\s+|\\s*:?\\s*(?=\`\`\`))(.+)`, ([file, text], title) =>
    append(title, value(file), textOf(text)),
  ),
  form(`replace\\s+(all\\s+)?${quoted}\\s+with\\s+${quoted}\\s+in\\s+${word}`, (groups, title) =>
    replace(title, groups),
  ),
  form('(?:run|exec):?\\s+(`[^`]+`|```.+)|(?:run|exec):\\s*(.+)', ([marked, rest], title) =>
    call(title, 'Exec', [[['command'], marked === undefined ? rest : scriptOf(marked)]]),
  ),
  form('fetch\\s+([a-z]+://\\S+)', ([url], title) => call(title, 'WebFetch', [[['url'], url]], true)),
  form('search\\s+the\\s+web\\s+for\\s+(.+)', ([query], title) =>
    call(title, 'WebSearch', [[['query'], value(query)]], true),
  ),
  form('delegate:?\\s+("[^"]+"|```.+)|delegate:\\s*(.+)', ([marked, rest], title) =>
    call(title, 'SpawnSubagent', [[['task', 'prompt'], marked === undefined ? rest : value(scriptOf(marked))]], true),
  ),
  form('call\\s+(?:the\\s+tool\\s+)?([\\w-]{1,64})(?:\\s+with)?\\s*(\\{.*)?', ([tool = '', json = '{}'], title) => ({
    kind: 'call',
    title,
    tool,
    arguments: [],
    json,
    isParallel: false,
  })),
  form('think(?:\\s+about)?:?\\s+(.+)', ([text = '']) => ({ kind: 'think', text })),
  form('say:?\\s+(.+)', ([text]) => ({ kind: 'say', text: unquoted(text) })),
];

const beginning =
  /^(?:read|cat|list|ls|find|grep|search|write|create|append|replace|run|exec|fetch|delegate|call|think|say)\b/i;

/** Whether `piece` begins like a step. */
export const beginsStep = (piece: string): boolean => beginning.test(piece);

/** Parses `piece`; undefined when it is not a step. */
export function stepOf(piece: string): Step | undefined {
  if (!beginsStep(piece)) return undefined;
  for (const { when, step } of forms) {
    const found = when.exec(piece);
    if (found) return step(found.slice(1), titleOf(piece));
  }
  return undefined;
}

function readStep([file, first, last]: readonly (string | undefined)[], title: string): Step {
  const from = first === undefined ? undefined : Number(first);
  const limit = from === undefined ? undefined : Math.max(1, Number(last ?? from) - from + 1);
  return call(
    title,
    'ReadFile',
    [
      [path, value(file)],
      [['offset'], from],
      [['limit'], limit],
    ],
    true,
  );
}

/** The words themselves: without quotation marks, or without the punctuation at the end of a sentence. */
function value(text = ''): string {
  return isQuoted(text) ? unquoted(text) : text.replace(/(?<=\w)[.,!?]$/, '');
}

const isQuoted = (text: string): boolean => /^(?:`.*`|".*")$/s.test(text);

function unquoted(text = ''): string {
  if (!isQuoted(text)) return text;
  if (text.startsWith('`')) return text.slice(1, -1);
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}

/** Text of a file ends with a line end, whether it was fenced or stands on the line. */
function textOf(text = ''): string {
  const inner = fenced(text) ?? unquoted(text);
  return inner === '' || inner.endsWith('\n') ? inner : `${inner}\n`;
}

const scriptOf = (text: string): string => fenced(text) ?? value(text);

const fenced = (text: string): string | undefined => /^```[^\n]*\n(.*?)\n?[ \t]*```$/s.exec(text)?.[1];

const titleOf = (piece: string): string => {
  const [line = ''] = piece.split('\n');
  return line.length > 80 ? `${line.slice(0, 80).replace(/[\uD800-\uDBFF]$/, '')}…` : line;
};

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
